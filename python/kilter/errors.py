"""What can go wrong, as exceptions. All of them are kilter.Error, and so ValueError."""

from ._kilter import Error


class InputValueError(Error):
    """An input with a wrong name or shape, or a wrong argument."""


class InputTypeError(Error, TypeError):
    """An input with a wrong element type, or no array at all."""
