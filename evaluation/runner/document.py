"""YAML with positions: each error names file, line, key and remedy."""

import difflib
import math

import yaml

REQUIRED = object()


class Mistake(Exception):
    """An error in an experiment's file, or in a page, that its author must fix."""


class Section:
    """A mapping of a file. All its keys must be among `known`; None allows any."""

    def __init__(self, file, node, name, known):
        self._file, self._node, self.name, self._entries = file, node, name, {}
        if not isinstance(node, yaml.MappingNode):
            raise _mistake(file, node, name, "is not a mapping", "write KEY: VALUE lines below it")
        for key, value in node.value:
            if key.value in self._entries:
                raise _mistake(file, key, key.value, "is there twice", "keep one of them")
            if known is not None and key.value not in known:
                near = difflib.get_close_matches(key.value, known, 1)
                remedy = f"did you mean {near[0]}?" if near else f"known here: {', '.join(known)}"
                raise _mistake(file, key, key.value, "is not known", remedy)
            self._entries[key.value] = key, value

    def __contains__(self, key):
        return key in self._entries

    def keys(self):
        return list(self._entries)

    def mistake(self, key, what, remedy):
        """The error to raise about the value of that key, or about the section itself when it has no such key."""
        node = self._entries[key][0] if key in self._entries else self._node
        return _mistake(self._file, node, key, what, remedy)

    def _node_of(self, key, kind, what):
        if key not in self._entries:
            raise self.mistake(key, "is missing", f"add it to {self.name}")
        node = self._entries[key][1]
        if not isinstance(node, kind):
            raise self.mistake(key, f"is not {what}", f"write {what}")
        return node

    def text(self, key, default=REQUIRED):
        """Scalars as they are written: `off` and `0.10` stay text."""
        if key not in self._entries and default is not REQUIRED:
            return default
        return self._node_of(key, yaml.ScalarNode, "one value").value

    def number(self, key, default=REQUIRED, least=-math.inf):
        text = self.text(key, default)
        if text is default:
            return default
        try:
            value = float(text)
        except ValueError:
            raise self.mistake(key, f"is not a number: {text}", "write one, without a unit") from None
        if not value >= least:
            raise self.mistake(key, f"is {text}", f"at least {least:g}")
        return value

    def whole(self, key, default=REQUIRED, least=1):
        value = self.number(key, default, least)
        if value is not default and value != int(value):
            raise self.mistake(key, f"is {value:g}", "write a whole number")
        return value if value is default else int(value)

    def texts(self, key, default=REQUIRED):
        """One value or a list of them."""
        if key not in self._entries and default is not REQUIRED:
            return default
        node = self._node_of(key, (yaml.ScalarNode, yaml.SequenceNode), "a value or a list of values")
        values = [node] if isinstance(node, yaml.ScalarNode) else node.value
        if not values or not all(isinstance(value, yaml.ScalarNode) for value in values):
            raise self.mistake(key, "is not a list of values", "write [A, B, ...]")
        return [value.value for value in values]

    def section(self, key, known):
        return Section(self._file, self._node_of(key, yaml.MappingNode, "a mapping"), key, known)

    def named_texts(self, key):
        """{name: words} of a mapping, in its order; {} without the key."""
        if key not in self._entries:
            return {}
        section = self.section(key, None)
        return {name: section.text(name) for name in section.keys()}

    def named_sections(self, key, known):
        """{name: section} of a mapping of mappings; {} without the key."""
        if key not in self._entries:
            return {}
        section = self.section(key, None)
        return {name: section.section(name, known) for name in section.keys()}

    def choices(self, key):
        """{label: words} of a list of values, each its own label, or of a mapping."""
        if isinstance(self._entries[key][1], yaml.MappingNode):
            return self.named_texts(key)
        values = self.texts(key)
        if len(set(values)) != len(values):
            raise self.mistake(key, "has a value twice", "keep one of them")
        return dict(zip(values, values))


def _mistake(file, node, key, what, remedy):
    return Mistake(f"{file}:{node.start_mark.line + 1}: {key} {what}; {remedy}")


def load(file, known):
    """The file's outermost mapping."""
    try:
        node = yaml.compose(file.read_text(encoding="utf-8"), yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{file}:{mark.line + 1}" if mark else str(file)
        raise Mistake(f"{where}: not YAML: {getattr(error, 'problem', error)}; mend the syntax") from None
    if node is None:
        raise Mistake(f"{file}:1: the file is empty; describe an experiment in it")
    return Section(file, node, file.name, known)
