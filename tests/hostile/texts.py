"""Texts that mean harm to whatever reads an output: one for each way of ending a value and beginning something else.

Where a shell or an interpreter runs one of them as code, it makes a file called `pwned`, with nothing but what is built in.
"""

from __future__ import annotations

HARMLESS = "harmless7"
"""A text of no meaning to any reader, beside which an output with a hostile text is held."""

PWNED = "pwned"
"""The file that a hostile text makes where it is run."""

ONE_LINE = {
    "command substitution": "$(>pwned)",
    "backticks": "`>pwned`",
    "parameter": "${X:=}${PATH}$PATH",
    "single quote": "';>pwned;'",
    "double quote": '";>pwned;"',
    "separators": ";>pwned&>pwned|>pwned #",
    "backslash at the end": "x\\",
    "Tcl": '"][close [open pwned w]]{',
    "script element": "</script></style></title><script>alert(1)</script>-->",
    "attribute": "\"'><img src=x onerror=alert(1)>",
    "template": "{{ 7*7 }}{% raw %}${{ github.token }}%{ for x in y }",
    "Markdown": "|*a*_b_[c](javascript:d)<e>~~f~~`g`![h](i)&lt;",
    "YAML": "x: [y, {z: &a *a}] # !!python/object - ? | > %",
    "TOML": "x\" = '''y''' \"\"\"",
    "parents": "../../../etc/passwd",
    "option": "--index-url=https://evil.example",
    "workflow command": "::error file=x,line=1::evil",
    "older workflow command": "x ##[error]evil",
    "absolute path": "/etc/passwd",
    "unicode escape": "\\u003c/script>\\x1b[2J\\n",
    "end of a URL": " --hash=sha256:0 ; evil @ x",
    "long": "x" * 5000,
}
"""Texts without a character that nobody sees."""

UNSEEN = {
    "line break": "x\n>pwned\nRUN evil\n::error::evil\n#SBATCH --wrap=evil\n%post\n",
    "carriage return": "x\r>pwned\r::error::evil",
    "escape sequence": "x\x1b[2J\x1b[1;32m\x1b]0;evil\x07",
    "C1 controls": "x\x9b2J\x85evil",
    "separators of lines": "x\u2028evil\u2029evil\x0b\x0cevil\x1cevil",
    "direction": "x\u202e\u2066\u200f\u061cevil",
    "zero width": "x\u200b\u200d\u2060\ufeff\u00adevil\U000e0041\ufe0f\u3164",
}
"""Texts with line breaks and characters that nobody sees and a terminal or an editor obeys."""

HOSTILE = {**ONE_LINE, **UNSEEN}
