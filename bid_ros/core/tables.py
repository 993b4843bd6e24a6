"""Tables as text: in Markdown, and with columns of one width for a terminal."""

from collections.abc import Collection, Iterable, Sequence


def markdown_table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown, without a line break at its end."""
    first, *others = (f"| {' | '.join(map(str, line))} |" for line in (head, *rows))
    return "\n".join([first, "|---" * len(head) + "|", *others])


def aligned(lines: Sequence[Sequence[str]], right: Collection[int] = ()) -> str:
    """Return lines with columns of one width; those in ``right`` are aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
