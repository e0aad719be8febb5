"""Hostile and broken files of other programs, for the tests of both languages."""

from __future__ import annotations

import base64
import gzip
import io
import json
import random
import zipfile
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from strongroom.items.formats import READERS
from tests.items import corpora
from tests.items.encrypted_exports import protected
from tests.items.sample_files import CHROME, DOTENV, FIREFOX, KEEPASS_CSV, SAFARI

CANARY = "loquat-3306"

ENTRY = '<Entry><String><Key>Title</Key><Value>T</Value></String><Binary><Key>x</Key><Value Ref="0"/></Binary></Entry>'
CODE = "GEZDGNBVGY3TQOJQ"


class File(NamedTuple):
    """A file in a format, with the password that is given for it."""

    format: str
    data: bytes
    password: str | None = None


def _bitwarden(*items: Any) -> File:
    return File("bitwarden", json.dumps({"encrypted": False, "items": items}).encode())


def _keepass(inner: str, meta: str = "") -> File:
    return File("keepass-xml", f"<KeePassFile>{meta}<Root>{inner}</Root></KeePassFile>".encode())


def _onepassword(accounts: Any, **more: bytes) -> File:
    return File("1pux", corpora.zipped({"export.data": json.dumps({"accounts": accounts}).encode()} | more))


NO_FORMAT = [
    *(b"", b"\0", b"\xff\xfe\xfd", b"{", b"[]", b"{}", b"<a>", b"PK\x03\x04", b"null", b'"x"', b"\xff\xfea\0"),
    *(b"\xef\xbb\xbf{}", b"name,url,username,password\n", b"a,b\n1,2\n"),
]


def of_no_format() -> Iterator[File]:
    """Any bytes for every reader."""
    yield from (File(name, data) for name in READERS for data in NO_FORMAT)


BAD_ITEMS: list[tuple[str, Any]] = [
    ("is not an item", 5),
    ("is not an item", {"name": "Bad", "type": 1, "login": [CANARY]}),
    ("is not an item", {"name": "Bad", "type": 1, "fields": {"x": CANARY}}),
    ("is not an item", {"name": "Bad", "type": 2, "notes": {"x": CANARY}}),
    ("number that is too large", {"name": "Bad", "type": 2, "x": 2**60}),
    ("not valid Unicode", {"name": "Bad", "type": 2, "notes": "\ud800"}),
    ("is too large", {"name": "Bad", "type": 2, "notes": "x" * 5_000_000}),
    ("in the trash", {"name": "Bad", "type": 2, "deletedDate": "2024-01-01T00:00:00Z"}),
]


def of_json() -> Iterator[File]:
    """Items that are none, numbers and texts that no document holds, depth, and members that objects inherit."""
    for _, bad in BAD_ITEMS:
        yield _bitwarden({"name": "A", "type": 2}, bad, {"name": "B", "type": 1})
    yield File("bitwarden", b'{"encrypted": false, "items": [{"name": "A", "type": 2, "notes": "\xff"}, {"type": 2}]}')
    deep: Any = "x"
    for _ in range(400):
        deep = [deep]
    yield _bitwarden({"name": "Deep", "type": 2, "x": deep}, {"name": "\x1b[2J" + "x" * 10_000, "type": 1, "login": 5})
    yield _bitwarden({"name": "n", "type": 2, "x": 1.5e-7, "y": 123456.789}, {"type": True, "login": {"username": 5}})
    yield _bitwarden({"type": 1, "fields": [{"type": "0", "name": 1}, {"type": False}, {"type": True, "section": "s"}]})
    yield _bitwarden(
        {"type": 2, "id": 12345678901234567890}, *[{"name": "same", "type": 2, "\u00e9": "\U0001f600"}] * 2
    )
    yield _bitwarden({"type": 2, "name": "p", "__proto__": {"name": "x"}, "constructor": 1, "toString": None})
    for numbers in (
        '-12345678901234567890, "1"',
        "1.2345678901234567890, 1e400",
        "9007199254740993",
        "9007199254740991",
    ):
        items = ", ".join(f'{{"name": "n", "type": 2, "x": {one}}}' for one in numbers.split(", "))
        yield File("bitwarden", f'{{"encrypted": false, "items": [{items}]}}'.encode())
    for text in ("9" * 5000, "9" * 4000, "NaN", "[],", '[], "items": [{"type": 2}]', "[" * 1010 + "]" * 1010):
        yield File("bitwarden", f'{{"encrypted": false, "items": [], "x": {text}}}'.encode())
    note: dict[str, Any] = {"id": "YQ", "title": "Good", "name": "Good", "type": 2, "overview": {"title": "Good"}}
    yield File("cxf", json.dumps({"accounts": [{"items": [None, 5, note]}, 5, {}]}).encode())
    versions: list[Any] = [[], 2, 1, True]
    yield from (File("cxf", json.dumps({"version": {"major": one}, "accounts": []}).encode()) for one in versions)
    yield _bitwarden(None, 5, note)
    yield _onepassword([{"vaults": [{"attrs": {"name": "V"}, "items": [None, {"item": None}, note]}]}])


def of_csv() -> Iterator[File]:
    """Rows and quotations that are none, lines of every kind, addresses and one-time codes of every kind."""
    for name in ("chrome", "firefox", "safari", "keepass-csv"):
        for text in ("name,url\nx,y\n", "name\n", "\n", "\n\n", "name\n\n", 'a"b,c\n1,2\n', '"a\n', "x\r\ny\r\n"):
            yield File(name, text.encode())
    rows = [
        "A,u,ada,p,too,many\nB,u,ada,p\n",
        'A,u,ada,"p"x\nB,u,ada,p\n',
        "A,u,ada,\0\n",
        'A,u,ada,"p',
        'A,u,a,"p\n\n',
    ]
    rows += ['A,"u\n\nx",ada,p"q\r\rB,u,ada,p', "A,u,a," + "x" * 4_000_001 + "\nB,u,a,p", '"",,,\n,,,\n"",\n']
    hosts = [
        "https://[::1]:80/x",
        "https://USER:p@Host.Example:80/x",
        "//x/",
        "http://[x",
        "mailto:x@y",
        " https://S/ ",
    ]
    rows += [f",{one},a,b\n" for one in [*hosts, "https://", "HTTPS://A%42c/", "x", "https:///y"]]
    for row in rows:
        yield File("chrome", b"name,url,username,password\n" + row.encode())
    yield File("chrome", b"name,url,username,password\nA,u,ada,\xff\nB,u,ada,p\n")
    yield File("chrome", "name,url,username,password\nA,u,ada,é\n".encode("utf-16"))
    head = '"Account","Login Name","Password","Web Site","Comments"\n'
    for row in (
        '"A","dom\\\\ada","p\\"1\\\\","u","two\nlines"\n',
        '"C","c","p","","","more"\n',
        'A\\,b,c,"d"e,f\\',
        '"A","b',
    ):
        yield File("keepass-csv", (head + row).encode())
    for code in (
        f"otpauth://totp/x?secret={CODE}", "!!", CODE, f"steam://{CODE}", "otpauth://totp/x?secret=GE&digits=1_0",
        f"otpauth://totp/x?secret={CODE}&digits=+7&period= 30 ", f"otpauth://totp/%FF:a?secret={CODE}&issuer=%ff",
        f"otpauth://totp/a b:c d?secret={CODE}#frag", f"otpauth://[totp/x?secret={CODE}", f"otpauth://hotp/x?secret={CODE}",
        f"OTPAUTH://TOTP/x?SECRET=GE&secret={CODE.lower()}&algorithm=SHA-256&period=60",
    ):  # fmt: skip
        yield File("safari", f'Title,URL,Username,Password,Notes,OTPAuth\nA,,ada,p,hi,"{code}"\n'.encode())
        yield _bitwarden({"type": 1, "name": "x", "login": {"totp": code}})


XML = r"""
<a b='1' b='2'/>
<a>&foo;</a>
<a>&#0;</a>
<a>&#xD800;</a>
<a>&#x1F511;&#10;</a>
<a><!-- a -- b --></a>
<a>]]></a>
<a><![CDATA[<x>&]]></a>
<a></b>
<a
<a b
<a b=
<a b='
x<a/>
<a/>x
<a/><b/>
<?xml version='1.0' encoding='gbk'?><a/>
<?xml version='2.0'?><a/>
<?xml?><a/>
<a b='<'/>
<a b=c/>
<a b='1'c='2'/>
<1/>
<?pi x?><a><?p?></a>
<a><?xml x?></a>
<!DOCTYPE a><a/>
<a><!DOCTYPE b></a>
<a xmlns='x' é='1'/>
"""


def of_xml() -> Iterator[File]:
    """Markup that is none, document types, encrypted values, packed files, one-time codes, encodings."""
    for text in [
        *XML.strip().splitlines(),
        "<a>\x01</a>",
        "\n\n<a>\n</b>",
        "<a>\n\n&x;\n</a>",
        "<a>\r\n\r</a",
        " <?xml?><a/>",
    ]:
        yield File("keepass-xml", text.encode())
        yield _keepass(f"<Group>{text}</Group>")
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><KeePassFile>&b;</KeePassFile>'
    yield File("keepass-xml", bomb.encode())
    yield File(
        "keepass-xml",
        b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><KeePassFile><Root>&a;</Root></KeePassFile>',
    )
    yield File("keepass-xml", b"<a>" * 500)
    good = _keepass(
        "<Group><Name>x</Name><Entry><String><Key>Title</Key><Value>\u00e9</Value></String></Entry></Group>"
    )
    for encoding in ("utf-16", "iso-8859-1", "utf-8-sig"):
        named = encoding.removesuffix("-sig")
        whole = f"<?xml version='1.0' encoding='{named}'?>{good.data.decode()}"
        yield File("keepass-xml", whole.encode(encoding))
    title = "<String><Key>Title</Key><Value>Bank</Value></String>"
    secret = '<String><Key>Password</Key><Value Protected="True">AAAA</Value></String>'
    file = '<Binary><Key>x</Key><Value Protected="True">AAAA</Value></Binary>'
    entries = "".join(f"<Entry>{one}</Entry>" for one in (secret + title, secret, title + file))
    yield _keepass(f"<Group><Name>x</Name>{entries}</Group>")
    for strings in (
        {"TOTP Seed": CODE, "TOTP Settings": "30;6"}, {"TOTP Seed": CODE, "TOTP Settings": "30;S"}, {"TOTP Seed": CODE},
        {"TOTP Seed": CODE, "TOTP Settings": "x;6"}, {"TOTP Seed": CODE, "TOTP Settings": "30"},
        {"otp": "!!", "TOTP Seed": "x"},
        {"TimeOtp-Secret-Base32": CODE, "TimeOtp-Length": "8", "TimeOtp-Algorithm": "HMAC-SHA-256"},
        {"TimeOtp-Secret-Base32": CODE, "TimeOtp-Algorithm": "MD5"}, {"TimeOtp-Secret-Hex": "00"},
    ):  # fmt: skip
        inner = "".join(f"<String><Key>{name}</Key><Value>{value}</Value></String>" for name, value in strings.items())
        times = "<CreationTime>2024-02-30T00:00:00Z</CreationTime>"
        times += "<LastModificationTime>2024-02-29T00:00:00.5+02:30</LastModificationTime>"
        entry = f"<Entry><Times>{times}<X>1</X></Times>{inner}</Entry>"
        yield _keepass(f"<Group><Name>x</Name><Group><Name>a/b%</Name>{entry}</Group></Group>")
    about = "<Notes>of the group</Notes><Tags>a</Tags>"
    inner = f"<Group><Name>in</Name>{about}<Entry>{title}</Entry><Entry>{title}</Entry></Group>"
    yield _keepass(f"<Group><Name>x</Name>{about}{inner}<Group><Name>{'empty' * 20}</Name>{about}</Group></Group>")
    for count, size in ((1, 10 << 20), (1, 1000)):
        yield packed(count, size)


def packed(count: int, size: int) -> File:
    """So many entries with one packed file of this size."""
    packed = base64.b64encode(gzip.compress(b"\0" * size)).decode()
    blob = f'<Meta><Binaries><Binary ID="0" Compressed="True">{packed}</Binary></Binaries></Meta>'
    return _keepass(f"<Group><Name>x</Name>{ENTRY * count}</Group>", blob)


def damaged(data: bytes) -> bytes:
    """A zip file with some bytes of `export.data` changed."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        start = archive.getinfo("export.data").header_offset + 60
    return data[:start] + bytes(16) + data[start + 16 :]


def of_zip() -> Iterator[File]:
    """Damaged, cut, packed in other ways, with names that are paths, with files that are not there."""
    good = corpora.onepassword(1, 3)
    yield from (
        File("1pux", one)
        for one in (
            damaged(good),
            good.replace(b"export.data", b"export.dat0", 1),
            good[:-30],
            b"x" * 100 + good,
            good + b"x" * 100,
            good[10:],
        )
    )
    about = {"fileName": "secret", "documentId": "../../../../etc/", "decryptedSize": 1}
    item = {"uuid": "u", "categoryUuid": "006", "overview": {"title": "T"}, "details": {"documentAttributes": about}}
    yield _onepassword([{"vaults": [{"attrs": {"name": "V"}, "items": [item]}]}], **{"../../evil": b"x"})
    mails = [{"email_address": "a@example.com", "provider": one} for one in (None, "", "gmail")]
    fields = [{"id": "m", "title": "Mail", "value": {"email": one}} for one in mails]
    item = {
        "categoryUuid": "001",
        "overview": {"title": "T"},
        "details": {"sections": [{"title": "s", "fields": fields}]},
    }
    yield _onepassword([{"vaults": [{"attrs": {"name": "V", "desc": "of the vault"}, "items": [item, item]}]}])
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, zipfile.ZIP_STORED):
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("export.data", json.dumps({"accounts": []}), method)
        yield File("1pux", made.getvalue())


def of_variables() -> Iterator[File]:
    """Lines that are no variables, quotations of every kind."""
    for text in (
        "A=1\nno variable\nB=\"no end\nC='x' y\nD=4\n", "A='x\ny'\nB=2", 'A="x\\ny\\q\\$"', "A=\t'q'\t", "A='", 'A="\\',
        "export  A = b #c\n#x\n \nA\n=b\n", "A=\nB", 'A="x" # c\nB="y"z\nC=1', 'A.b-c=é ñ  \r\nB="\\\n"',
        "A=1\x0cB=2",
        "A = 'x' # c\n1A=2\nÄ=3", "A=1\nA=1\nA=2",
    ):  # fmt: skip
        yield File("dotenv", text.encode())


def of_encryption() -> Iterator[File]:
    """Passwords that are wrong or missing, and key derivations that no export has."""
    good = protected({"items": [], "x": "y" * 40}, "p", {"kdfType": 0, "kdfIterations": 1000})
    for change in (
        {"kdfIterations": 10**12}, {"kdfType": 7}, {"kdfIterations": True}, {"salt": 5},
        {"kdfType": 1, "kdfIterations": 3, "kdfMemory": 10**6, "kdfParallelism": 4},
        {"kdfType": 1, "kdfIterations": 3, "kdfMemory": 64, "kdfParallelism": 10**6},
        {"salt": "\ud800"}, {"encKeyValidation_DO_NOT_EDIT": 5}, {"data": "2.x"}, {"passwordProtected": False}, {},
    ):  # fmt: skip
        for password in ("p", "wrong", None):
            yield File("bitwarden", json.dumps(good | change).encode(), password)
    kind, data, mac = good["data"].split("|")
    flipped = ("A" if data[0] != "A" else "B") + data[1:]
    whole = good | {"data": f"{kind[:-4]}AA==|{data}|{mac}"}  # another nonce: the padding stays right
    yield from (
        File("bitwarden", json.dumps(one).encode(), "p") for one in (good | {"data": f"{kind}|{flipped}|{mac}"}, whole)
    )
    slow = {"kdfType": 1, "kdfIterations": 2, "kdfMemory": 16, "kdfParallelism": 4}
    yield File("bitwarden", json.dumps(protected(corpora.bitwarden(3, 5), "ü", slow)).encode(), "ü")


def hostile_files() -> list[File]:
    """All of these."""
    kinds = (of_no_format, of_json, of_csv, of_xml, of_zip, of_variables, of_encryption)
    return [file for kind in kinds for file in kind()]


def heavy_files() -> list[File]:
    """Those that would take much memory or time."""
    return [
        File("bitwarden", b'{"items": ' + b"[" * 1_000_000),
        File("cxf", b'{"items":[' + b"[]," * 2_100_000 + b"[]]}"),
        File("keepass-xml", b"<a>" + b"<b/>" * 5_000_000),
        File("1pux", corpora.zipped({"export.data": b" " * (400 << 20)})),
        File("chrome", b"name,url,username,password\n" + b"x" * (65 << 20)),
        File("keepass-csv", b"group,title,username,password\n" + b"\xff" * 3_000_000 + b",t,u,p\n"),
        File("chrome", b"name,url,username,password\n" + b"\xffa" * (15 << 20)),
        packed(60, 2_500_000),
    ]


def changed(name: str, good: bytes, count: int, seed: int) -> Iterator[File]:
    """A file with bytes changed, cut out or doubled, again and again."""
    chance = random.Random(seed)  # noqa: S311 - the same files every time
    for _ in range(count):
        data = bytearray(good)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(data))
            match chance.randint(0, 3):
                case 0:
                    data[at] = chance.randrange(256)
                case 1:
                    del data[at : at + chance.randint(1, 50)]
                case 2:
                    data[at:at] = data[max(0, at - 30) : at]
                case _:
                    data[at:at] = chance.choice([b"[", b"{", b'"', b"null", b"1e999", b"\xff", b"<", b",", b"\n"])
        yield File(name, bytes(data))


WRONG: list[Any] = [
    *(None, 5, -1.5, True, False, "x", [], {}, [[]], {"value": 5}, ["x"], [None], 10**30, "__proto__"),
    {"__proto__": {"x": 1}},
]


def mistyped(name: str, count: int, seed: int) -> Iterator[File]:
    """A file in which a value is replaced by one of another type, again and again."""
    whole: Any = {"cxf": corpora.cxf, "bitwarden": corpora.bitwarden, "1pux": _onepassword_json}[name](seed, 12)
    chance = random.Random(seed)  # noqa: S311 - the same files every time
    found = list(_places(whole))
    for path in chance.sample(found, min(count, len(found))):
        copy = json.loads(json.dumps(whole))
        place = copy
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = chance.choice(WRONG)
        data = json.dumps(copy).encode()
        yield File(name, corpora.zipped({"export.data": data}) if name == "1pux" else data)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each value of JSON."""
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, one in inner:
        yield from _places(one, (*path, step))


def _onepassword_json(seed: int, count: int) -> Any:
    with zipfile.ZipFile(io.BytesIO(corpora.onepassword(seed, count))) as archive:
        return json.loads(archive.read("export.data"))


SAMPLES: dict[str, Callable[[], bytes]] = {
    "cxf": lambda: json.dumps(corpora.cxf(5, 6)).encode(),
    "bitwarden": lambda: json.dumps(corpora.bitwarden(5, 6)).encode(),
    "1pux": lambda: corpora.onepassword(5, 6),
    "keepass-xml": lambda: corpora.keepass(5, 6).encode(),
    "keepass-csv": KEEPASS_CSV.encode,
    "chrome": CHROME.encode,
    "firefox": FIREFOX.encode,
    "safari": SAFARI.encode,
    "dotenv": DOTENV.encode,
}
