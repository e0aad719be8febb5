"""The chapter of content: JSON that every reader takes for the same value, and what all refuse."""

from __future__ import annotations

from typing import Any, Final

from tests.vectors.book import Book

DEEPEST: Final = 500
MOST: Final = 2**53 - 1


def nested(levels: int, inner: str = "1", *, objects: bool = False) -> str:
    """JSON in so many lists or objects."""
    before, after = ('{"a":', "}") if objects else ("[", "]")
    return before * levels + inner + after * levels


def contents() -> Book:
    """Values that are read and written, and those that are not."""
    book = Book("Content in JSON: depth, numbers, texts. `json` is its UTF-8.")

    def read(name: str, text: str) -> Any:
        return book.good(name, "read-content", {"json": text.encode().hex()})["value"]

    def refuse(name: str, text: str | bytes) -> None:
        raw = text if isinstance(text, bytes) else text.encode()
        book.bad(name, "read-content", {"json": raw.hex()})

    for name, text in {
        "an object": '{"a":[1,2.5,-3,true,false,null,"x"]}',
        "white space": " \t\r\n[ 1 , { } ]\n",
        "escapes": r'"\u00e9\ud83d\ude00\b\f\n\r\t\"\\\/"',
        "a text alone": '"x"',
        "the empty text": '""',
        "a member whose name is __proto__": '{"__proto__":1}',
        "zero with a sign": "-0",
        "a fraction": "0.1",
        "a fraction of many digits": "0.1234567890123456789",
        "a fraction that is too small": "1e-400",
        "the largest integer": str(MOST),
        "the smallest integer": str(-MOST),
        "an integer with a fraction": "1.0",
        "an integer with an exponent": "1e2",
        "a number of 10^21": "1e21",
        "a number of 10^300": "1e300",
        "a negative number of 10^21": "-1E+21",
        "the deepest list": nested(DEEPEST),
        "the deepest list of nothing": nested(DEEPEST, ""),
        "the deepest object": nested(DEEPEST, objects=True),
        "as many lists as may be nested, and more, side by side": f"[{','.join(['[]'] * 600)}]",
        "brackets in a text": f'"{"[" * 600}"',
        "brackets in a text after an escape": '["\\\\\\"' + "[" * 600 + '"]',
    }.items():
        read(name, text)
    assert read("a number of 30 digits, which no program writes so", "1" + "0" * 30) == 1e30
    assert read("of a member that stands twice, the last counts", '{"a":1,"a":2}') == {"a": 2}
    for name, text in {
        "an integer of 2^53": str(2**53),
        "an integer of -2^53": str(-(2**53)),
        "an integer beyond 2^53": str(2**53 + 1),
        "an integer of 20 digits": "1" * 20,
        "an integer of 2^64": str(2**64),
        "a number of 10^20": "1e20",
        "a number of 10^20 with a fraction": "100000000000000000000.0",
        "a number just below 10^21": "999999999999999868928",
        "an integer of 2^53 in an object": f'{{"a":[{{"b":{2**53}}}]}}',
        "a number that is not finite": "1e400",
        "a number of 400 digits": "1" + "0" * 400,
        "a list that is too deep": nested(DEEPEST + 1),
        "a list of nothing that is too deep": nested(DEEPEST + 1, ""),
        "an object that is too deep": nested(DEEPEST + 1, objects=True),
        "lists that are far too deep": nested(3_000),
        "lists that are deep beyond all stacks": nested(20_000),
        "lists that do not end": "[" * 20_000,
        "a lone surrogate": r'"\ud800"',
        "a lone surrogate in the name of a member": r'{"\udfff":1}',
        "surrogates in the wrong order": r'"\ude00\ud83d"',
        "nothing": "",
        "white space alone": " ",
        "a byte order mark": "\ufeff1",
        "two values": "1 2",
        "a comma at the end": "[1,]",
        "a comment": "/**/1",
        "a text in single quotes": "'x'",
        "a name without quotes": "{a:1}",
        "a name without a value": '{"a"}',
        "NaN": "NaN",
        "Infinity": "Infinity",
        "minus infinity": "-Infinity",
        "undefined": "undefined",
        "True": "True",
        "a plus": "+1",
        "a zero before a number": "01",
        "a point before a number": ".5",
        "a point after a number": "1.",
        "an exponent without a number": "1e",
        "a number in hexadecimal": "0x10",
        "a minus alone": "-",
        "a control character in a text": '"\x01"',
        "a line feed in a text": '"\n"',
        "a form feed between": "[\x0c1]",
        "a wide space between": "[\u00a01]",
        "a zero byte after the end": "1\0",
        "an unknown escape": r'"\x41"',
        "half an escape": r'"\u12"',
        "a text without an end": '"x',
        "an object without an end": '{"a":1',
        "another end than was begun": "[1}",
    }.items():
        refuse(name, text)
    for name, raw in {
        "no UTF-8": b'"\xff"',
        "a surrogate in UTF-8": b'"\xed\xa0\x80"',
        "more bytes than UTF-8 takes": b'"\xc0\x80"',
        "a cut sequence of UTF-8": b'"\xc3"',
        "no UTF-8 in a name": b'{"\xff":1}',
        "UTF-16": "1".encode("utf-16"),
    }.items():
        refuse(name, raw)
    _written(book)
    return book


def _written(book: Book) -> None:
    deep: Any = 1
    for _ in range(DEEPEST):
        deep = [deep]
    for name, value in {
        "an object": {"a": [1, 2.5, None, True, "é"]},
        "the largest integer": MOST,
        "the smallest integer": -MOST,
        "a fraction": 1.5,
        "a number of 10^21": 1e21,
        "a number of 10^300": -1e300,
        "the deepest list": deep,
    }.items():
        book.good(f"{name} is written", "write-content", {"value": value})
    for name, value in {
        "an integer of 2^53": 2**53,
        "an integer of -2^53": [-(2**53)],
        "a number of 10^20": {"a": 1e20},
        "a number below 10^21": -9.9e20,
        "a list that is too deep": [deep],
        "a lone surrogate": "\ud800",
        "a lone surrogate in the name of a member": {"\udfff": 1},
    }.items():
        book.bad(f"{name} is not written", "write-content", {"value": value}, "validation_error")
