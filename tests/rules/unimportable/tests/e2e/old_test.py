from pair_case import Nothing

__all__ = ["Nothing"]
