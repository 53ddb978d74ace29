"""What printed Julia programs carry along for matrices: functions where they call them."""

from __future__ import annotations

MATRIX_SOURCES = (
    '''
"""The adjugate, or its derivative along directions."""
function adj(a, directions...)
    u, s, v = svd(a, full=true)
    n, q = length(s), length(directions) + 1
    inner = zeros(eltype(a), n, n)
    turned = [u' * e * v for e in directions]
    for order in permutations(q), k in CartesianIndices(ntuple(_ -> n, q))
        allunique(Tuple(k)) || continue
        others = [s[j] for j in 1:n if !(j in Tuple(k))]
        term = parity(order) * reduce(*, others, init=one(eltype(a)))
        for d in 1:q - 1
            term *= turned[d][k[d], k[order[d]]]
        end
        inner[k[order[q]], k[q]] += term
    end
    return det(u) * det(v) * v * inner * u'
end
''',
    """
function cholesky_pullback(a, b)
    a = tril(a)
    m = tril(a' * b)
    m += tril(m, -1)'
    x = inv(a)
    return x' * m * x / 2
end
""",
    '''
"""1 or -1 for every column, the sign of its largest entry."""
function column_signs(v)
    top = [v[argmax(abs.(v[:, k])), k] for k in axes(v, 2)]
    return ifelse.(top .< 0, -one(eltype(v)), one(eltype(v)))
end
''',
    '''
"""Divided differences over points, by integrals where they cancel."""
function differences(g, x)
    precision = eps(eltype(x))
    d = g[1].(x)
    bound = precision * abs.(d)
    for j in 1:length(x) - 1
        gap = x[j + 1:end] - x[1:end - j]
        d = (d[2:end] - d[1:end - 1]) ./ gap
        bound = (bound[2:end] + bound[1:end - 1]) ./ gap + precision * abs.(d)
        for i in 1:length(d)
            bound[i] <= 9 * precision * abs(d[i]) && isfinite(d[i]) && continue
            fine = integral_of(g, x[i:i + j], j, 9)
            doubt = abs(fine - integral_of(g, x[i:i + j], j, 8)) + 2 * precision * abs(fine)
            apart = abs(fine - d[i])
            if doubt < bound[i] && apart <= 1e3 * bound[i] || !isfinite(d[i])
                d[i], bound[i] = fine, doubt
            end
        end
    end
    return d[1]
end
''',
    '''
"""Eigenvalues in rising order, and eigenvectors as columns."""
function eigh(a)
    found = eigen(Symmetric((a + a') / 2))
    return (found.values, found.vectors)
end
''',
    '''
"""The entries of a triangle, row by row."""
function extracttrian(a, offset, lower)
    n = size(a, 1)
    return [a[i, j] for i in 1:n for j in 1:n if lower ? j - i <= offset : j - i >= offset]
end
''',
    '''
"""A function of a matrix, or its derivative along directions: of block matrices."""
function frechet(f, a, directions...)
    n, kind, a = size(a, 1), eltype(a), Float64.(a)
    for (k, e) in enumerate(directions)
        a = [a kron(Matrix(I, 2^(k - 1), 2^(k - 1)), e); zero(a) a]
    end
    return isempty(a) ? kind.(a) : kind.(real.(f(a))[1:n, end - n + 1:end])
end
''',
    '''
"""1 / (w[j] - w[i]), and 0 on the diagonal."""
function gaps(w, degenerate)
    d, off = w' .- w, [i != j for i in eachindex(w), j in eachindex(w)]
    tied = off .& (abs.(d) .<= rounding(w))
    least = degenerate == "epsilon" ? 1e-10 : degenerate
    if least isa Number
        d = ifelse.(d .< 0, -1, 1) .* max.(abs.(d), eltype(w)(least))
    elseif least == "nan"
        d[tied] .= NaN
    elseif any(tied)
        error("equal eigenvalues")
    end
    return ifelse.(off, 1 ./ d, zero(eltype(w)))
end
''',
    '''
"""The divided difference as the integral of a derivative over a simplex."""
function integral_of(g, x, order, nodes)
    off = [k / sqrt(4 * k^2 - 1) for k in 1:nodes - 1]
    points, vectors = eigen(Symmetric(diagm(1 => off, -1 => off)))
    points, weights = (points .+ 1) / 2, vectors[1, :] .^ 2
    total = zero(eltype(x))
    for k in CartesianIndices(ntuple(_ -> nodes, order))
        u = [points[i] for i in Tuple(k)]
        weight = prod(weights[i] for i in Tuple(k)) * prod(u .^ (order - 1:-1:0))
        at = x[1] + sum((x[2:end] - x[1:end - 1]) .* cumprod(u))
        total += weight * g[order + 1](eltype(x)(at))
    end
    return eltype(x)(total)
end
''',
    '''
"""The lower triangle with a diagonal that is not negative, and orthonormal rows."""
function lq_parts(a)
    found = qr(a')
    q, r = Matrix(found.Q), found.R
    s = sign.(diag(r))
    return (Matrix((r .* s)'), Matrix((q .* s')'))
end
''',
    '''
"""The matrix whose triangle has these entries, row by row."""
function maketrian(v, offset, lower)
    n = (isqrt(8 * length(v) + 1) - 1) ÷ 2 + abs(offset)
    a, k = zeros(eltype(v), n, n), 0
    for i in 1:n, j in 1:n
        if lower ? j - i <= offset : j - i >= offset
            a[i, j] = v[k += 1]
        end
    end
    return a
end
''',
    '''
"""1 or -1, as a permutation has an even or an odd number of inversions."""
parity(order) = (-1)^count(order[i] > order[j] for j in eachindex(order) for i in 1:j - 1)
''',
    '''
"""All orders of 1, 2, ..., q."""
function permutations(q)
    q == 0 && return [Int[]]
    return [[p[1:k - 1]; q; p[k:end]] for p in permutations(q - 1) for k in 1:q]
end
''',
    '''
"""The rounding error of eigenvalues."""
rounding(w) = max(length(w), 16) * eps(eltype(w)) * reduce(max, abs.(w), init=zero(eltype(w)))
''',
    '''
"""A function of a symmetric matrix, or its derivative along directions, by divided differences."""
function spectral(g, a, w, v, directions...)
    q, n = length(directions), length(w)
    q == 0 && return v * diagm(g[1].(w)) * v'
    turned = [v' * ((e + e') / 2) * v for e in directions]
    inner = zeros(eltype(a), n, n)
    for k in CartesianIndices(ntuple(_ -> n, q + 1))
        d = differences(g, sort([w[i] for i in Tuple(k)]))
        for order in permutations(q)
            inner[k[1], k[q + 1]] += d * prod(turned[order[i]][k[i], k[i + 1]] for i in 1:q)
        end
    end
    return v * inner * v'
end
''',
    '''
"""The trace of a function of a symmetric matrix."""
spectral_trace(g, a, w, v) = sum(g[1].(w))
''',
    '''
"""The squared distances of the rows of two matrices."""
squared_distances(a, b) = [sum(abs2, a[i, :] - b[j, :]) for i in axes(a, 1), j in axes(b, 1)]
''',
    '''
"""What a function makes of every matrix in stacks of them: along so many first axes."""
function stacked(f, rank, arrays...)
    lead = size(arrays[1])[1:rank]
    part(a, k) = a[k, ntuple(_ -> :, ndims(a) - rank)...]
    found = [f((part(a, k) for a in arrays)...) for k in CartesianIndices(lead)]
    join(parts) = [parts[Tuple(k)[1:rank]...][Tuple(k)[rank + 1:end]...]
                   for k in CartesianIndices((lead..., size(first(parts))...))]
    first(found) isa Tuple || return join(found)
    return Tuple(join(map(p -> p[j], found)) for j in eachindex(first(found)))
end
''',
    '''
"""The thin singular value decomposition: a = u * diagm(s) * v."""
function svd_parts(a)
    found = svd(a)
    return (found.U, found.S, Matrix(found.Vt))
end
''',
    '''
"""s[j] / (s[j] + s[i]) / (s[j] - s[i]), and 0 on the diagonal."""
function svd_gaps(s, degenerate)
    d, total, kind = s' .- s, s' .+ s, eltype(s)
    off = [i != j for i in eachindex(s), j in eachindex(s)]
    tied, instead = off .& (abs.(d) .<= rounding(s)), fill(kind(NaN), size(d))
    refused = degenerate == "spectral" ? tied[:, 1:min(1, end)] : tied
    if degenerate in ("raise", "norm", "spectral") && any(refused)
        error("equal singular values")
    end
    least = degenerate == "epsilon" ? 1e-10 : degenerate
    if least isa Number
        d, tied = ifelse.(d .< 0, -1, 1) .* max.(abs.(d), kind(least)), falses(size(d))
    elseif least in ("nuclear", "spectral")
        instead = ifelse.(total .> rounding(s), 1 ./ (2 * total), zero(kind))
    end
    share = s' ./ ifelse.(total .> 0, total, one(kind))
    found = ifelse.(tied, instead, share ./ ifelse.(off .& .!tied, d, one(kind)))
    return ifelse.(off, found, zero(kind))
end
''',
    '''
"""1 / s, and what stands for it where s is 0."""
function svd_reciprocal(s, degenerate)
    least = degenerate == "epsilon" ? 1e-10 : degenerate
    least isa Number && return 1 ./ max.(s, eltype(s)(least))
    zeros = s .<= rounding(s)
    norms = degenerate in ("nuclear", "spectral")
    if degenerate != "nan" && !norms && any(zeros)
        error("a singular value of 0")
    end
    return ifelse.(zeros, eltype(s)(norms ? 0 : NaN), 1 ./ s)
end
''',
)
