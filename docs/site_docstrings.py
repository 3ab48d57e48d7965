"""How the docstrings of the package are prepared for the site."""

import inspect
import re
from importlib import import_module

import griffe

# The decorators that write the list of parameters into a class's docstring.
DECORATORS = ("described", "takes_settings")
DOCTEST = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.DOTALL | re.MULTILINE)


class PreparedDocstrings(griffe.Extension):
    """Griffe reads source code, and knows examples by their heading; these have neither."""

    def on_object(self, *, obj, **_):
        """Take a decorated class's docstring from run time, and fence the examples in others."""
        if obj.docstring is None:
            return
        if obj.is_class and not {
            decorator.callable_path.rpartition(".")[2] for decorator in obj.decorators
        }.isdisjoint(DECORATORS):
            loaded = getattr(import_module(obj.module.path), obj.name)
            obj.docstring.value = inspect.cleandoc(loaded.__doc__)
        if "Examples\n---" not in obj.docstring.value:
            obj.docstring.value = DOCTEST.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
