"""NumPy: a product through its BLAS, a solved system through its LAPACK."""


def measure(probe):
    import numpy

    probe.version(numpy.__version__)
    left, right = integers(32, 32, 3), integers(32, 32, 5)
    probe.outcome("matmul", lambda: is_equal(numpy.array(left, float) @ numpy.array(right, float), product(left, right)))
    probe.outcome("solve", is_solved, numpy)


def is_solved(numpy):
    matrix = numpy.array(integers(8, 8, 2), float) + 20 * numpy.eye(8)
    expected = numpy.arange(8.0)
    return abs(numpy.linalg.solve(matrix, matrix @ expected) - expected).max() < 1e-9
