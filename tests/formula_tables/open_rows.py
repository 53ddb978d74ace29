"""What is not as the tables want it yet."""

from __future__ import annotations

#: Rows that are not printed as the tables want them yet.
OPEN = {
    "Gaussian sample by the variance",
    "Student's t",
    "Wishart log density",
    "attention by the values",
    "discrete Lyapunov residual",
    "exponential along a line",
    "layer normalisation",
    "log-determinant along a line, order 2",
    "log-determinant of a multiple, by the scalar",
    "log-sum-exp of a linear map, order 2",
    "mixture of Gaussians by a mean",
    "multivariate Gaussian by the covariance",
    "principal components",
    "probit",
    "softmax regression, order 2",
    "standard deviation by its name",
    "trace of ASBS, symmetric S",
    "trace of an exponential along a line",
    "trace of products of Gram matrices",
}

#: Rows whose text is read as an equal node of another text.
READ_OTHERWISE = {"A-optimal design", "D-optimal design"}
