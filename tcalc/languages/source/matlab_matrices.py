"""What printed MATLAB programs carry along for matrices: functions where they call them."""

from __future__ import annotations

MATRIX_SOURCES = (
    """
function x = adj(a, varargin)
% The adjugate, or its derivative along directions.
  [u, s, v] = svd(a);
  q = numel(varargin) + 1;
  n = size(a, 1);
  s = diag(s);
  index = places_of(n, q);
  others = ones(size(index, 1), 1);
  for j = 1:n
    count = sum(index == j, 2);
    others = others .* ((count == 0) * s(j) + (count == 1));
  end
  inner = zeros(n, class(a));
  orders = perms(1:q);
  for k = 1:size(orders, 1)
    order = orders(k, :);
    permuted = eye(q);
    term = others * det(permuted(order, :));
    for d = 1:q - 1
      e = u' * varargin{d} * v;
      term = term .* e(sub2ind([n n], index(:, d), index(:, order(d))));
    end
    inner = inner + accumarray([index(:, order(q)), index(:, q)], term, [n n]);
  end
  x = det(u) * det(v) * v * inner * u';
end
""",
    """
function x = cholesky_pullback(a, b)
  a = tril(a);
  m = tril(a' * b);
  m = m + tril(m, -1)';
  x = inv(a);
  x = x' * m * x / 2;
end
""",
    """
function s = column_signs(v)
% 1 or -1 for every column, the sign of its largest entry.
  [~, k] = max(abs(v), [], 1);
  top = v(sub2ind(size(v), k, 1:size(v, 2)));
  s = cast(1 - 2 * (top(:) < 0), class(v));
end
""",
    """
function s = det_sign(a)
% The sign of the determinant.
  [l, u] = lu(a);
  s = sign(prod(sign(diag(u))) * det(l));
end
""",
    """
function p = eigh(a)
% Eigenvalues in rising order, and eigenvectors as columns.
  [v, w] = eig((a + a') / 2);
  [w, order] = sort(diag(w));
  p = {w, v(:, order)};
end
""",
    """
function v = extractdiag(a, offset)
  k = (1:size(a, 1) - abs(offset))';
  v = a(sub2ind(size(a), k + max(0, -offset), k + max(0, offset)));
end
""",
    """
function v = extracttrian(a, offset, lower)
% The entries of a triangle, row by row.
  n = size(a, 1);
  a = a';
  if lower
    v = a(triu(true(n), -offset));
  else
    v = a(tril(true(n), -offset));
  end
  v = v(:);
end
""",
    """
function x = frechet(f, a, varargin)
% A function of a matrix, or its derivative along directions: of block matrices.
  n = size(a, 1);
  for k = 1:numel(varargin)
    a = [a, kron(eye(2^(k - 1)), varargin{k}); zeros(size(a), class(a)), a];
  end
  if ~isempty(a)
    a = cast(real(f(double(a))), class(a));
  end
  x = a(1:n, end - n + 1:end);
end
""",
    """
function x = gaps(w, degenerate)
% 1 / (w(j) - w(i)), and 0 on the diagonal.
  d = w' - w;
  off = ~eye(numel(w));
  tied = off & abs(d) <= rounding(w);
  if strcmp(degenerate, 'epsilon')
    degenerate = 1e-10;
  end
  if isnumeric(degenerate)
    d = max(abs(d), degenerate) .* (1 - 2 * (d < 0));
  elseif strcmp(degenerate, 'nan')
    d(tied) = NaN;
  elseif any(tied(:))
    error('equal eigenvalues');
  end
  d(~off) = Inf;
  x = 1 ./ d;
end
""",
    """
function y = logdet(a)
% The logarithm of the absolute value of the determinant.
  [~, u] = lu(a);
  y = sum(log(abs(diag(u))));
end
""",
    """
function p = lq(a)
% The lower triangle with a diagonal that is not negative, and orthonormal rows.
  [q, r] = qr(a', 0);
  s = diag(sign(diag(r)));
  p = {r' * s, s * q'};
end
""",
    """
function a = maketrian(v, offset, lower)
% The matrix whose triangle has these entries, row by row.
  n = floor((sqrt(8 * numel(v) + 1) - 1) / 2) + abs(offset);
  a = zeros(n, class(v));
  if lower
    a(triu(true(n), -offset)) = v;
  else
    a(tril(true(n), -offset)) = v;
  end
  a = a';
end
""",
    """
function index = places_of(n, q)
% All index tuples of an array with q axes of extent n, one a row.
  index = mod(floor((0:n^q - 1)' ./ n.^(0:q - 1)), n) + 1;
end
""",
    """
function r = rounding(w)
% The rounding error of eigenvalues.
  r = max(numel(w), 16) * eps(class(w)) * max([abs(w); 0]);
end
""",
    """
function x = spectral(g, a, w, v, varargin)
% A function of a symmetric matrix, or its derivative along directions, by divided differences.
  q = numel(varargin);
  n = numel(w);
  if q == 0
    x = v * diag(arrayfun(g{1}, w)) * v';
    return
  end
  index = places_of(n, q + 1);
  table = differences(g, sort(reshape(w(index), size(index)), 2));
  inner = zeros(n, class(a));
  orders = perms(1:q);
  for k = 1:size(orders, 1)
    term = table;
    for d = 1:q
      e = varargin{orders(k, d)};
      e = v' * ((e + e') / 2) * v;
      term = term .* e(sub2ind([n n], index(:, d), index(:, d + 1)));
    end
    inner = inner + accumarray([index(:, 1), index(:, q + 1)], term, [n n]);
  end
  x = v * inner * v';
end

function d = differences(g, x)
% Divided differences over the points of each row, by integrals where they cancel.
  precision = eps(class(x));
  d = arrayfun(g{1}, x);
  bound = precision * abs(d);
  for j = 1:size(x, 2) - 1
    gap = x(:, j + 1:end) - x(:, 1:end - j);
    d = (d(:, 2:end) - d(:, 1:end - 1)) ./ gap;
    bound = (bound(:, 2:end) + bound(:, 1:end - 1)) ./ gap + precision * abs(d);
    for i = 1:size(d, 2)
      near = find(~(bound(:, i) <= 9 * precision * abs(d(:, i)) & isfinite(d(:, i))));
      points = x(near, i:i + j);
      fine = integral_of(g, points, j, 9);
      doubt = abs(fine - integral_of(g, points, j, 8)) + 2 * precision * abs(fine);
      better = doubt < bound(near, i) & abs(fine - d(near, i)) <= 1e3 * bound(near, i);
      better = better | ~isfinite(d(near, i));
      d(near(better), i) = fine(better);
      bound(near(better), i) = doubt(better);
    end
  end
  d = d(:, 1);
end

function y = integral_of(g, x, order, nodes)
% The divided difference as the integral of a derivative over a simplex.
  k = 1:nodes - 1;
  off = k ./ sqrt(4 * k .^ 2 - 1);
  [v, u] = eig(diag(off, 1) + diag(off, -1));
  u = (diag(u) + 1) / 2;
  c = v(1, :)' .^ 2;
  index = places_of(nodes, order);
  u = reshape(u(index), size(index));
  c = prod(reshape(c(index), size(index)) .* u .^ (order - 1:-1:0), 2);
  points = x(:, 1) + (x(:, 2:end) - x(:, 1:end - 1)) * cumprod(u, 2)';
  y = reshape(arrayfun(g{order + 1}, points), size(points)) * c;
end
""",
    """
function y = spectral_trace(g, a, w, v)
% The trace of a function of a symmetric matrix.
  y = sum(arrayfun(g{1}, w));
end
""",
    """
function d = squared_distances(a, b)
% The squared distances of the rows of two matrices.
  d = sum((permute(a, [1 3 2]) - permute(b, [3 1 2])) .^ 2, 3);
end
""",
    """
function x = svd_gaps(s, degenerate)
% s(j) / (s(j) + s(i)) / (s(j) - s(i)), and 0 on the diagonal.
  d = s' - s;
  total = s' + s;
  off = ~eye(numel(s));
  tied = off & abs(d) <= rounding(s);
  instead = NaN(size(d));
  refused = tied;
  if strcmp(degenerate, 'spectral')
    refused = tied(:, 1:min(1, end));
  end
  if any(strcmp(degenerate, {'raise', 'norm', 'spectral'})) && any(refused(:))
    error('equal singular values');
  end
  if strcmp(degenerate, 'epsilon')
    degenerate = 1e-10;
  end
  if isnumeric(degenerate)
    d = max(abs(d), degenerate) .* (1 - 2 * (d < 0));
    tied(:) = false;
  elseif any(strcmp(degenerate, {'nuclear', 'spectral'}))
    instead = 0.5 ./ total;
    instead(total <= rounding(s)) = 0;
  end
  total(total <= 0) = 1;
  d(~off | tied) = 1;
  x = (s' ./ total) ./ d;
  x(tied) = instead(tied);
  x(~off) = 0;
end
""",
    """
function p = svd_parts(a)
% The thin singular value decomposition: a = u * diag(s) * v.
  [u, s, v] = svd(a, 'econ');
  p = {u, s(1:size(s, 1) + 1:end)', v'};
end
""",
    """
function x = svd_reciprocal(s, degenerate)
% 1 / s, and what stands for it where s is 0.
  if strcmp(degenerate, 'epsilon')
    degenerate = 1e-10;
  end
  if isnumeric(degenerate)
    x = 1 ./ max(s, degenerate);
    return
  end
  zero = s <= rounding(s);
  norms = any(strcmp(degenerate, {'nuclear', 'spectral'}));
  if ~strcmp(degenerate, 'nan') && ~norms && any(zero)
    error('a singular value of 0');
  end
  x = 1 ./ s;
  x(zero) = NaN;
  if norms
    x(zero) = 0;
  end
end
""",
)
