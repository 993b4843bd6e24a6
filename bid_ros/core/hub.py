"""Names on the Hugging Face hub, given where a path on this computer is needed."""

import re
from pathlib import Path
from typing import Final

NAME: Final = re.compile(r"(?:https://huggingface\.co/(?:datasets/)?)?([\w-][\w.-]*/([\w-][\w.-]*))/?")


def fetch_hint(path: str | Path, dataset: bool = False) -> str:
    """Return the end of a sentence about a path that does not exist: how the hub's ``owner/name`` is fetched.

    Empty where the path has another form, or lies in a folder that exists.

    Args:
        path: as a person gave it.
        dataset: it should be a data set; if not, a policy.
    """
    found = NAME.fullmatch(str(path).replace("https:/h", "https://h"))
    if found is None or Path(found[1]).parent.exists():
        return ""
    kind = " --repo-type dataset" if dataset else ""
    return f"; from the Hugging Face hub fetch it by: hf download {found[1]}{kind} --local-dir {found[2]}"
