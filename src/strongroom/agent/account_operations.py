"""Operations on the account as a whole: sync, conflicts, tokens, the password, the recovery key, new keys."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from strongroom.agent.operations import Operation, Operations, member
from strongroom.agent.protocol import Failed
from strongroom.client import Document, keep_both, keep_mine, keep_theirs
from strongroom.items import Item, fields_of

if TYPE_CHECKING:
    from strongroom.agent.account import Account
    from strongroom.agent.conversation import Conversation
    from strongroom.client.replica.conflicts import Conflict
    from strongroom.client.replica.refused import RefusedChange

_RESOLVERS: Final = {"mine": keep_mine, "theirs": keep_theirs, "both": keep_both}


def _sync(operations: Operations, _: dict[str, Any], conversation: Conversation) -> Any:
    account = operations.unlocked_account()
    with account.person.at(conversation):
        report = account.sync(lambda made: conversation.progress(made.phase, made.done, made.total))
    return {
        "pulled": report.pulled,
        "pushed": report.pushed,
        "gaps": report.gaps,
        "conflicts": len(report.conflicts),
        "refused": len(report.refused),
        "renamed": [{"wanted": one.wanted, "name": one.name} for one in report.renamed_vaults],
    }


def _conflicts(operations: Operations, _: dict[str, Any], __: Conversation) -> Any:
    """What waits for a decision: names of items and of fields, and no value."""
    account = operations.unlocked_account()
    names = {one.uid: one.name for one in account.replica.vaults()}
    return {
        "conflicts": [_conflict(one, names) for one in account.replica.conflicts()],
        "refused": [_refused(one) for one in account.replica.refused()],
    }


def _conflict(one: Conflict, names: dict[str, str]) -> dict[str, Any]:
    mine, theirs = _fields(one.mine), _fields(one.theirs)
    differ = sorted(name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name))
    return {
        "id": one.uid,
        "vault": names.get(one.vault, ""),
        "title": _title(one.mine) or _title(one.theirs),
        "here": "deleted" if one.mine.deleted else "changed",
        "there": "deleted" if one.theirs.deleted else "changed",
        "changedHereAt": one.mine.updated_at,
        "changedThereAt": one.theirs.updated_at,
        "fields": differ,
    }


def _refused(one: RefusedChange) -> dict[str, Any]:
    title = "" if one.document is None else _title(one.document)
    return {
        "id": one.uid,
        "vault": one.vault_name,
        "title": title,
        "reason": one.reason.kind,
        "sentence": one.reason.sentence,
    }


def _fields(document: Document[Any]) -> dict[str, bytes]:
    if document.deleted or not isinstance(document.raw, dict):
        return {}
    item = Item.from_stored(document.raw)
    return {"title": item.title.encode()} | {one.path: one.data for one in fields_of(item)}


def _title(document: Document[Any]) -> str:
    found = document.raw.get("title") if isinstance(document.raw, dict) else None
    return found if isinstance(found, str) else ""


def _resolve(operations: Operations, request: dict[str, Any], _: Conversation) -> Any:
    """Decide a conflict, or what to do with a refused change; `all` decides every one."""
    account, wanted, how = operations.unlocked_account(), request.get("id"), member(request, "how")
    everything = bool(request.get("all"))
    if how in _RESOLVERS:
        open_ = [one for one in account.replica.conflicts() if everything or wanted in {one.uid, _title(one.mine)}]
        for conflict in open_:
            conflict.resolve(_RESOLVERS[how])
        count = len(open_)
    elif how in {"discard", "retry"}:
        changes = [one for one in account.replica.refused() if everything or wanted in {one.uid, _titled(one)}]
        for change in changes:
            change.discard() if how == "discard" else change.retry()
        count = len(changes)
    else:
        raise Failed("invalid", "A conflict is decided by mine, theirs or both; a refused change by discard or retry.")
    if not count and not everything:
        raise Failed("item_not_found", f"No conflict waits for {wanted!r}; run: strongroom conflicts")
    account.catalog.refresh()
    account.changed()
    return {"decided": count}


def _titled(change: RefusedChange) -> str:
    return "" if change.document is None else _title(change.document)


def _token(operations: Operations, request: dict[str, Any], conversation: Conversation) -> Any:
    """A token for a machine: it opens one vault, or one collection of it, and nothing else."""
    account, seconds = operations.unlocked_account(), request.get("expires_in")
    expires = int((time.time() + seconds) * 1000) if isinstance(seconds, int) else None
    permissions = request.get("permissions")
    with account.person.at(conversation):
        account.sync()
        vault = account.client.vault(account.catalog.shelf(member(request, "vault")).vault)
        place: Any = vault.collection(request["collection"]) if request.get("collection") else vault
        token = place.token(member(request, "name"), permissions=permissions, expires_at=expires)
    return {"token": token, "vault": vault.name, "expiresAt": expires, "url": _url(account)}


def _url(account: Account) -> str:
    return account.client._core.session.url  # noqa: SLF001


def _tokens(operations: Operations, _: dict[str, Any], conversation: Conversation) -> Any:
    account = operations.unlocked_account()
    names = {one.uid: one.name for one in account.replica.vaults()}
    with account.person.at(conversation):
        found = account.client.api_keys()
    return [
        {
            "id": one.uid,
            "name": one.name,
            "vaults": None if one.vault_uids is None else [names.get(uid, uid) for uid in one.vault_uids],
            "permissions": None if one.permissions is None else [str(each) for each in one.permissions],
            "expiresAt": one.expires_at,
            "lastUsedAt": one.last_used_at,
        }
        for one in found
    ]


def _revoke(operations: Operations, request: dict[str, Any], conversation: Conversation) -> Any:
    account, wanted = operations.unlocked_account(), member(request, "id")
    with account.person.at(conversation):
        fitting = [one for one in account.client.api_keys() if wanted in {one.uid, one.name}]
        if len(fitting) != 1:
            code = "ambiguous_name" if fitting else "api_key_not_found"
            raise Failed(code, f"{len(fitting) or 'No'} tokens are named {wanted!r}; name one by its id.")
        account.client.revoke_api_key(fitting[0].uid)
    return {"id": fitting[0].uid, "name": fitting[0].name}


def _make_recovery(operations: Operations, request: dict[str, Any], conversation: Conversation) -> Any:
    account = operations.unlocked_account()
    with account.person.at(conversation):
        return {"key": account.client.make_recovery_key(member(request, "password"), code=account.person.code)}


def _remove_recovery(operations: Operations, request: dict[str, Any], conversation: Conversation) -> Any:
    account = operations.unlocked_account()
    with account.person.at(conversation):
        account.client.remove_recovery_key(member(request, "password"), code=account.person.code)
    return {}


def _passwd(operations: Operations, request: dict[str, Any], conversation: Conversation) -> Any:
    account = operations.unlocked_account()
    with account.person.at(conversation):
        account.client.change_password(member(request, "password"), member(request, "new"), code=account.person.code)
    return {}


def _rotate(operations: Operations, request: dict[str, Any], conversation: Conversation) -> Any:
    """New keys for everything; a new recovery key, if there was one, what was left, and who has not seen it."""
    account, new = operations.unlocked_account(), request.get("new")
    with account.person.at(conversation):
        account.sync()
        made = account.client.rotate_keys(
            member(request, "password"),
            new_password=new if isinstance(new, str) else None,
            progress=lambda done, total: conversation.progress("Sealing", done, total),
            code=account.person.code,
        )
        account.sync()
    return {
        "key": made.recovery_key,
        "unseen": [one.uid if isinstance(one, Document) else one.vault for one in made.unseen],
        "passkeys": [one.name or one.rp_id for one in made.passkeys],
        "devices": [one.device_name or one.user_agent or one.id for one in made.devices],
    }


OPERATIONS: dict[str, Operation] = {
    "sync": _sync,
    "conflicts": _conflicts,
    "resolve": _resolve,
    "token": _token,
    "tokens": _tokens,
    "revoke": _revoke,
    "make_recovery": _make_recovery,
    "remove_recovery": _remove_recovery,
    "passwd": _passwd,
    "rotate": _rotate,
}
