"""What printed MATLAB programs carry along: functions where they call them, and the self-check.

Data: a function a text, as it is printed. `matlab_operators` says which operator calls which.
"""

from __future__ import annotations

import re

from .matlab_entries import ENTRY_SOURCES
from .matlab_matrices import MATRIX_SOURCES

ARRAY_SOURCES = (
    """
function k = argmax(a, axis)
% The first place of the largest entry, counted from 0.
  [~, k] = max(a, [], axis);
  k = k - 1;
end
""",
    """
function k = argmin(a, axis)
% The first place of the smallest entry, counted from 0.
  [~, k] = min(a, [], axis);
  k = k - 1;
end
""",
    """
function k = argsort(a, axis)
% The places of entries in rising order, counted from 0.
  [~, k] = sort(a, axis);
  k = k - 1;
end
""",
    """
function c = contract(subscripts, a, b)
% Sums of products: letters name axes, and those that the result has not are summed.
  arrow = strfind(subscripts, '->');
  out = subscripts(arrow + 2:end);
  words = strsplit(subscripts(1:arrow - 1), ',');
  [u, v] = words{:};
  both = u(ismember(u, v));
  batch = both(ismember(both, out));
  summed = both(~ismember(both, out));
  left = u(~ismember(u, v));
  right = v(~ismember(v, u));
  extents = @(x, word, letters) arrayfun(@(letter) size(x, find(word == letter)), letters);
  order = @(word, letters) [arrayfun(@(letter) find(word == letter), letters), ...
                            numel(word) + (1:2)];
  rows = extents(a, u, left);
  columns = extents(b, v, right);
  pages = extents(a, u, batch);
  inner = prod(extents(a, u, summed));
  p = reshape(permute(a, order(u, [left, summed, batch])), [prod(rows), inner, prod(pages)]);
  q = reshape(permute(b, order(v, [summed, right, batch])), [inner, prod(columns), prod(pages)]);
  c = zeros([prod(rows), prod(columns), prod(pages)], class(zeros(class(a)) + zeros(class(b))));
  for k = 1:prod(pages)
    c(:, :, k) = p(:, :, k) * q(:, :, k);
  end
  c = permute(reshape(c, [rows, columns, pages, 1, 1]), order([left, right, batch], out));
end
""",
    """
function varargout = floats(varargin)
% Arrays of one class: single where all arrays are (numbers may be double), else double.
  given = cellfun(@(a) ~isscalar(a), varargin);
  if ~any(given)
    given = ~given;
  end
  kind = 'double';
  if all(cellfun(@(a) isa(a, 'single'), varargin(given)))
    kind = 'single';
  end
  varargout = cellfun(@(a) cast(a, kind), varargin, 'UniformOutput', false);
end
""",
    """
function results = fold(step, states, slices, fixed, count, backward, kind)
% All results of a loop: last states, all after each step, all before each step.
  times = 1:count;
  if backward
    times = count:-1:1;
  end
  states = cellfun(@(s) cast(s, kind), states, 'UniformOutput', false);
  rows = cellfun(@(s) zeros(count + 1, numel(s), kind), states, 'UniformOutput', false);
  shapes = cellfun(@size, states, 'UniformOutput', false);
  for k = 1:numel(states)
    rows{k}(1 + backward * count, :) = states{k}(:);
  end
  for t = times
    now = cellfun(@(x) page(x, 1, t), slices, 'UniformOutput', false);
    states = step(states{:}, now{:}, fixed{:});
    for k = 1:numel(states)
      rows{k}(t + ~backward, :) = states{k}(:);
    end
  end
  last = cellfun(@(a, n) reshape(a(1 + ~backward * count, :), n), rows, shapes, ...
                 'UniformOutput', false);
  part = @(skip) cellfun(@(a, n) reshape(a(skip + (1:count), :), [count, n]), rows, shapes, ...
                         'UniformOutput', false);
  results = [last, part(~backward), part(backward)];
end
""",
    """
function results = fold_bounded(step, states, slices, fixed, count, backward, made, kind)
% Those of a loop of so many steps, or until the last state is not 0; then the number of steps.
  most = count;
  if ~isempty(made)
    most = min(max(fix(double(made)), 0), count);
  end
  states = cellfun(@(s) cast(s, kind), states, 'UniformOutput', false);
  rows = cellfun(@(s) zeros(count + 1, numel(s), kind), states, 'UniformOutput', false);
  shapes = cellfun(@size, states, 'UniformOutput', false);
  for k = 1:numel(states)
    rows{k}(1 + backward * most, :) = states{k}(:);
  end
  done = 0;
  while done < most && (~isempty(made) || ~states{end})
    t = done + 1;
    if backward
      t = most - done;
    end
    now = cellfun(@(x) page(x, 1, t), slices, 'UniformOutput', false);
    states = step(states{:}, now{:}, fixed{:});
    for k = 1:numel(states)
      rows{k}(t + ~backward, :) = states{k}(:);
    end
    done = done + 1;
  end
  steps = {};
  if isempty(made)
    [rows, shapes, steps] = deal(rows(1:end-1), shapes(1:end-1), {cast(done, kind)});
  end
  place = 1 + done;
  if backward
    place = 1 + most - done;
  end
  last = cellfun(@(a, n) reshape(a(place, :), n), rows, shapes, 'UniformOutput', false);
  part = @(skip) cellfun(@(a, n) reshape(a(skip + (1:count), :), [count, n]), rows, shapes, ...
                         'UniformOutput', false);
  results = [last, part(~backward), part(backward), steps];
end
""",
    """
function x = inner(a, b)
% The sum of all products of entries.
  x = a(:)' * b(:);
end
""",
    """
function y = logsumexp(a, axes, b)
% log(sum(b .* exp(a))) along axes, without overflow.
  if isempty(a)
    shape = [size(a), ones(1, max(axes))];
    shape(axes) = 1;
    y = -Inf(shape, class(a));
    return
  end
  top = a;
  for axis = axes
    top = max(top, [], axis);
  end
  top(~isfinite(top)) = 0;
  y = exp(a - top);
  if nargin > 2
    y = b .* y;
  end
  for axis = axes
    y = sum(y, axis);
  end
  y = log(y) + top;
end
""",
    """
function b = merge(a, core, target, before)
% The last axes as others: the last of them varies fastest.
  shape = arrayfun(@(axis) size(a, axis), 1:before);
  a = permute(a, [1:before, before + (core:-1:1), before + core + (1:2)]);
  a = reshape(a, [shape, target(end:-1:1), 1, 1]);
  b = permute(a, [1:before, before + (numel(target):-1:1), before + numel(target) + (1:2)]);
end
""",
    """
function y = norm2(a, axes)
% The Euclidean norm along axes, without overflow.
  top = abs(a);
  for axis = axes
    top = max(top, [], axis);
  end
  [~, power] = log2(top);
  scale = cast(2, class(a)) .^ (power - 1);
  scale(top == 0 | ~isfinite(top)) = 1;
  y = (a ./ scale) .^ 2;
  for axis = axes
    y = sum(y, axis);
  end
  y = sqrt(y) .* scale;
end
""",
    """
function y = norm_of_order(a, order, axes)
% The norm of an order along axes, without overflow.
  top = abs(a);
  for axis = axes
    top = max(top, [], axis);
  end
  top(top == 0 | ~isfinite(top)) = 1;
  y = (abs(a) ./ top) .^ order;
  for axis = axes
    y = sum(y, axis);
  end
  y = y .^ (1 / order) .* top;
end
""",
    """
function b = pad(a, before, after)
% The array within zeros, so many before and behind it along every axis.
  before = max(0, before);
  after = max(0, after);
  shape = arrayfun(@(axis) size(a, axis), 1:numel(before));
  b = zeros([shape + before + after, 1], class(a));
  key = arrayfun(@(skip, n) skip + (1:n), before, shape, 'UniformOutput', false);
  b(key{:}) = a;
end
""",
    """
function b = page(a, rank, k)
% The k-th of what stands along the first axes, so many.
  shape = size(a);
  a = reshape(a, prod(shape(1:min(rank, end))), []);
  b = reshape(a(k, :), [shape(rank + 1:end), 1, 1]);
end
""",
    """
function b = place(b, a, starts, steps, shape)
% The array b with the entries of a added at places: they start there, indices move them.
  at = strided(b, starts, steps, shape);
  b(at) = b(at) + reshape(a, size(at));
end
""",
    """
function k = places(k, n)
% Places along an axis of extent n, which count from 0; negative ones count from its end.
  if any(k(:) < -n | k(:) >= n)
    error('an index is out of range');
  end
  k = mod(double(k), n) + 1;
end
""",
    """
function total = segment_sum(a, index, rank, n)
% Slices of a added up: index says to which of n places each of them goes.
  shape = size(a);
  rest = [shape(rank + 1:end), 1];
  a = reshape(a, numel(index), prod(rest));
  [k, column] = ndgrid(places(index(:), n), 1:size(a, 2));
  total = reshape(accumarray([k(:), column(:)], a(:), [n, size(a, 2)]), [n, rest]);
end
""",
    """
function y = shares(a, axes, extreme)
% 1 over how many entries are the extreme one along axes, and 0 for all others.
  top = a;
  for axis = axes
    top = extreme(top, [], axis);
  end
  y = cast(a == top, class(a));
  count = y;
  for axis = axes
    count = sum(count, axis);
  end
  y = y ./ count;
end
""",
    """
function b = stacked(f, rank, varargin)
% What a function makes of every matrix in stacks of them: along so many first axes.
  shape = arrayfun(@(axis) size(varargin{1}, axis), 1:rank);
  rows = {};
  for k = 1:prod(shape)
    given = cellfun(@(a) page(a, rank, k), varargin, 'UniformOutput', false);
    found = f(given{:});
    if ~iscell(found)
      found = {found};
    end
    for j = 1:numel(found)
      rows{j}(k, :) = found{j}(:);
    end
  end
  b = cellfun(@(a, c) reshape(a, [shape, size(c)]), rows, found, 'UniformOutput', false);
  if numel(b) == 1
    b = b{1};
  end
end
""",
    """
function at = strided(a, starts, steps, shape)
% Linear places of an array: they start at places from 0, and indices of a shape move them.
  stride = cumprod([1, arrayfun(@(axis) size(a, axis), 1:numel(starts) - 1)]);
  at = 1 + stride * starts';
  for k = 1:numel(shape)
    move = (0:shape(k) - 1) * (stride * steps(:, k));
    at = at + reshape(move, [ones(1, k - 1), shape(k), 1, 1]);
  end
end
""",
    """
function b = take(a, keys, first, rank)
% Entries at places along some axes; ':' takes all of an axis.
%   The axes of the places, so many, are axes first, first + 1, ... of the result.
  at = 1;
  stride = 1;
  axis = 1;
  for k = 1:numel(keys)
    n = size(a, k);
    if ischar(keys{k})
      axis = axis + rank * (axis == first);
      at = at + stride * reshape(0:n - 1, [ones(1, axis - 1), n, 1, 1]);
      axis = axis + 1;
    else
      i = places(keys{k}, n) - 1;
      at = at + stride * reshape(i, [ones(1, first - 1), size(i)]);
    end
    stride = stride * n;
  end
  b = reshape(a(at), size(at));
end
""",
    """
function b = window(a, starts, steps, shape)
% The entries at places: they start there, and indices of the shape move them.
  at = strided(a, starts, steps, shape);
  b = reshape(a(at), size(at));
end
""",
)

SOURCES = (*ARRAY_SOURCES, *ENTRY_SOURCES, *MATRIX_SOURCES)

#: Sources by the name of the function, the first one in each.
HELPERS = {re.findall(r"(\w+)\(", text)[0]: text.strip() for text in SOURCES}

#: Further functions in the sources.
OTHERS = {name for text in SOURCES for name in re.findall(r"function .*?(\w+)\(", text)} - {
    *HELPERS
}
