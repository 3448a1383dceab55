"""The tie of the laws to the code."""


def check(laws, here, names):
    raise NotImplementedError
