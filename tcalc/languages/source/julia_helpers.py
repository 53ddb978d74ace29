"""What printed Julia programs carry along: functions where they call them.

Data: a function a text, as it is printed. `julia_operators` says which operator calls which.
"""

from __future__ import annotations

import re

from .julia_matrices import MATRIX_SOURCES

ENTRY_SOURCES = (
    """
betainc(a, b, x) = oftype(x, first(beta_inc(Float64(a), Float64(b), Float64(x))))
""",
    """
gammainc(a, x) = first(gamma_inc(a, x))
""",
    """
gammaincc(a, x) = last(gamma_inc(a, x))
""",
    '''
"""The sign of the gamma function."""
gammasgn(x) = x < 0 && isodd(floor(Int, x)) ? -one(x) : one(x)
''',
    '''
"""The derivative of order n of the ratio of the normal density to its distribution."""
function inverse_mills(order, x)
    n = Int(order)
    low, depth = ((-8, 8), (-4, 24), (-3, 40))[min(n, 2) + 1]
    if x > low
        x = min(x, oftype(x, 60))
        h = [exp(-x^2 / 2) / (ndtr(x) * sqrt(2 * oftype(x, pi)))]
        u = [x + h[1]]
        for k in 1:n
            push!(h, -sum(binomial(k - 1, j) * h[j + 1] * u[k - j] for j in 0:k - 1))
            push!(u, h[end] + (k == 1))
        end
        return h[end]
    end
    z = -x
    t = [2 * (depth + 1) / (z + sqrt(z^2 + 4 * (depth + 1)))]
    for m in 1:n
        products = [t[j + 1] * t[m - j + 1] for j in 1:m - 1]
        push!(t, (t[m] - reduce(+, products, init=zero(x))) / (2 * t[1] + z))
    end
    for k in depth:-1:1
        below = copy(t)
        below[1] += z
        n > 0 && (below[2] -= 1)
        t[1] = k / below[1]
        for m in 1:n
            t[m + 1] = -sum(below[j + 1] * t[m - j + 1] for j in 1:m) / below[1]
        end
    end
    return t[end] * factorial(n) + (n == 0 ? z : n == 1 ? -one(x) : zero(x))
end
''',
    '''
"""The logarithm of the absolute value of the gamma function."""
log_gamma(x) = first(logabsgamma(x))
''',
    '''
"""The logarithm of the normal distribution function."""
function log_ndtr(x)
    z = x / sqrt(oftype(x, 2))
    return x < -1 ? log(erfcx(-z) / 2) - x^2 / 2 : log1p(-erfc(z) / 2)
end
''',
    '''
"""log(exp(a) + exp(b)) without overflow."""
logaddexp(a, b) = a == b ? a + log(oftype(a, 2)) : max(a, b) + log1p(exp(-abs(a - b)))
''',
    """
logit(x) = log(x / (1 - x))
""",
    '''
"""The normal distribution function."""
ndtr(x) = erfc(-x / sqrt(oftype(x, 2))) / 2
''',
    '''
"""The inverse of the normal distribution function."""
ndtri(x) = -sqrt(oftype(x, 2)) * erfcinv(2 * x)
''',
    """
polygamma_of(n, x) = polygamma(Int(n), x)
""",
    '''
"""The spherical Bessel function of the first kind."""
function spherical_jn(order, x)
    n = Int(order)
    iszero(x) && return oftype(x, n == 0)
    size = sqrt(oftype(x, pi) / (2 * abs(x))) * besselj(n + one(x) / 2, abs(x))
    return x < 0 && isodd(n) ? -size : size
end
''',
    '''
"""Student's distribution function."""
function stdtr(df, t)
    near, half = t^2 < df, oftype(t, 0.5)
    tail = near ? half - betainc(half, df / 2, t^2 / (df + t^2)) / 2 :
                  betainc(df / 2, half, df / (df + t^2)) / 2
    return t < 0 ? tail : 1 - tail
end
''',
    '''
"""a * log(b), and 0 where a is 0."""
xlogy(a, b) = iszero(a) && !isnan(b) ? zero(a * b) : a * log(b)
''',
)

ARRAY_SOURCES = (
    '''
"""The places of entries in rising order, counted from 0."""
argsort(a, axis) = mapslices(row -> sortperm(row) .- 1, a, dims=axis)
''',
    '''
"""Sums of products: letters name axes, and those that the result has not are summed."""
function contract(subscripts, a, b)
    words, out = split(subscripts, "->")
    u, v = collect.(split(words, ","))
    both = [k for k in u if k in v]
    batch, summed = filter(in(out), both), filter(!in(out), both)
    left, right = filter(!in(v), u), filter(!in(u), v)
    order(word, letters) = [findfirst(isequal(k), word) for k in letters]
    extents(x, word, letters) = [size(x, findfirst(isequal(k), word)) for k in letters]
    rows, columns, pages = extents(a, u, left), extents(b, v, right), extents(a, u, batch)
    inner = prod(extents(a, u, summed))
    p = reshape(permutedims(a, order(u, [left; summed; batch])), prod(rows), inner, :)
    q = reshape(permutedims(b, order(v, [summed; right; batch])), inner, prod(columns), :)
    c = zeros(promote_type(eltype(a), eltype(b)), prod(rows), prod(columns), prod(pages))
    for k in axes(c, 3)
        @views mul!(c[:, :, k], p[:, :, k], q[:, :, k])
    end
    whole = reshape(c, rows..., columns..., pages...)
    return isempty(out) ? whole[] : permutedims(whole, order([left; right; batch], out))
end
''',
    '''
"""The type of a program's numbers, Float32 where all arrays have that, and its arguments of it."""
function floats(given...)
    arrays = filter(a -> a isa AbstractArray, given)
    kinds = map(eltype, isempty(arrays) ? given : arrays)
    kind = all(k -> k in (Float16, Float32), kinds) ? Float32 : Float64
    made(a) = a isa AbstractArray ? convert(AbstractArray{kind}, a) : kind(a)
    return (kind, map(made, given)...)
end
''',
    '''
"""All results of a loop: last states, all after each step, all before each step."""
function fold(step, states, slices, fixed, count, backward, kind)
    part(a, t) = a[t, ntuple(_ -> :, ndims(a) - 1)...]
    rows = [zeros(kind, count + 1, size(s)...) for s in states]
    save(t, found) = foreach(rows, found) do row, s
        setindex!(row, s, t, ntuple(_ -> :, ndims(s))...)
    end
    save(backward ? count + 1 : 1, states)
    for t in (backward ? (count:-1:1) : (1:count))
        now = [part(row, backward ? t + 1 : t) for row in rows]
        save(backward ? t : t + 1, step(now..., (part(x, t) for x in slices)..., fixed...))
    end
    last = [part(row, backward ? 1 : count + 1) for row in rows]
    after = [row[(1:count) .+ !backward, ntuple(_ -> :, ndims(row) - 1)...] for row in rows]
    before = [row[(1:count) .+ backward, ntuple(_ -> :, ndims(row) - 1)...] for row in rows]
    return (last..., after..., before...)
end
''',
    '''
"""Those of a loop of `made` steps, or until the last state is not 0; then the number of steps."""
function fold_bounded(step, states, slices, fixed, count, backward, made, kind)
    part(a, t) = a[t, ntuple(_ -> :, ndims(a) - 1)...]
    rows = [zeros(kind, count + 1, size(s)...) for s in states]
    save(t, found) = foreach(rows, found) do row, s
        setindex!(row, s, t, ntuple(_ -> :, ndims(s))...)
    end
    most = made === nothing ? count : min(max(floor(Int, made), 0), count)
    save(backward ? most + 1 : 1, states)
    done = 0
    while done < most && (made !== nothing || rows[end][done + 1] == 0)
        t = backward ? most - done : done + 1
        now = [part(row, backward ? t + 1 : t) for row in rows]
        save(backward ? t : t + 1, step(now..., (part(x, t) for x in slices)..., fixed...))
        done += 1
    end
    shown = made === nothing ? rows[1:end-1] : rows
    last = [part(row, backward ? most - done + 1 : done + 1) for row in shown]
    after = [row[(1:count) .+ !backward, ntuple(_ -> :, ndims(row) - 1)...] for row in shown]
    before = [row[(1:count) .+ backward, ntuple(_ -> :, ndims(row) - 1)...] for row in shown]
    steps = made === nothing ? (kind(done),) : ()
    return (last..., after..., before..., steps...)
end
''',
    '''
"""log(sum(b .* exp.(a))) along axes, without overflow."""
function logsumexp(a, axes, b=1)
    top = maximum(a, dims=axes, init=typemin(eltype(a)))
    top = ifelse.(isfinite.(top), top, zero(eltype(a)))
    found = log.(sum(b .* exp.(a .- top), dims=axes)) .+ top
    return length(axes) == ndims(a) ? found[1] : dropdims(found, dims=axes)
end
''',
    '''
"""The last axes as others: the last of them varies fastest."""
function merge_axes(a, core, target)
    lead = ndims(a) - core
    a = permutedims(a, [1:lead; lead + core:-1:lead + 1])
    a = reshape(a, size(a)[1:lead]..., reverse(target)...)
    return permutedims(a, [1:lead; ndims(a):-1:lead + 1])
end
''',
    '''
"""An axis of extent 1 in front of others."""
const newaxis = [CartesianIndex()]
''',
    '''
"""The Euclidean norm along axes, without overflow."""
function norm2(a, axes)
    top = maximum(abs.(a), dims=axes)
    scale = ifelse.((top .> 0) .& isfinite.(top), exp2.(exponent_of.(top)), one(eltype(a)))
    found = sqrt.(sum((a ./ scale) .^ 2, dims=axes)) .* scale
    return length(axes) == ndims(a) ? found[1] : dropdims(found, dims=axes)
end

exponent_of(x) = oftype(x, x > 0 && isfinite(x) ? exponent(x) : 0)
''',
    '''
"""The norm of an order along axes, without overflow."""
function norm_of_order(a, order, axes)
    top = maximum(abs.(a), dims=axes)
    scale = ifelse.((top .> 0) .& isfinite.(top), top, one(eltype(a)))
    found = sum((abs.(a) ./ scale) .^ order, dims=axes) .^ (1 / order) .* scale
    return length(axes) == ndims(a) ? found[1] : dropdims(found, dims=axes)
end
''',
    '''
"""The array within zeros, so many before and behind it along every axis."""
function pad(a, before, after)
    before, after = max.(0, before), max.(0, after)
    found = zeros(eltype(a), size(a) .+ before .+ after)
    found[(skip .+ (1:n) for (skip, n) in zip(before, size(a)))...] = a
    return found
end
''',
    '''
"""Adds the entries of a to those of b at places: they start there, indices move them."""
function place!(b, a, starts, steps, shape)
    at = strided(size(b), starts, steps, shape)
    b[at] .+= a
    return b
end
''',
    '''
"""The first place where a vector is largest or smallest, counted from 0."""
place_of(f, a, axis) = ndims(a) == 1 ? f(a) - 1 :
                       dropdims(map(k -> k[axis] - 1, f(a, dims=axis)), dims=axis)
''',
    '''
"""Places along an axis of extent n, which count from 0; negative ones count from its end."""
function places(k, n)
    all(i -> -n <= i < n, k) || error("an index is out of range")
    return mod.(Int.(k), n) .+ 1
end
''',
    '''
"""Slices of a added up: index says to which of n places each of them goes."""
function segment_sum(a, index, n)
    rest = ntuple(_ -> :, ndims(a) - ndims(index))
    total = zeros(eltype(a), n, size(a)[ndims(index) + 1:end]...)
    for (k, i) in zip(CartesianIndices(size(index)), places(index, n))
        view(total, i, rest...) .+= view(a, k, rest...)
    end
    return total
end
''',
    '''
"""1 over how many entries are the extreme one along axes, and 0 for all others."""
function shares(extreme, a, axes)
    hit = a .== extreme(a, dims=axes)
    return hit ./ eltype(a).(sum(hit, dims=axes))
end
''',
    '''
"""Linear places in an array: they start at places from 0, and indices of a shape move them."""
function strided(size, starts, steps, shape)
    stride = cumprod([1; collect(size)])[1:length(size)]
    first = 1 + sum(stride .* starts)
    moves = ntuple(k -> sum(stride .* map(step -> step[k], steps)), length(shape))
    return [first + sum(moves .* (Tuple(k) .- 1)) for k in CartesianIndices(shape)]
end
''',
    '''
"""The entries at places: they start there, and indices of the shape move them."""
window(a, starts, steps, shape) = a[strided(size(a), starts, steps, shape)]
''',
)

SOURCES = (*ARRAY_SOURCES, *ENTRY_SOURCES, *MATRIX_SOURCES)

#: Sources by the names that they define first.
HELPERS = {
    re.findall(r"^(?:function |const )?([\w!]+)(?:\(| = )", text, re.MULTILINE)[0]: text.strip()
    for text in SOURCES
}
