"""The engine that is meant where none is named."""

DEFAULT_ENGINE = "gridrpc-native"
