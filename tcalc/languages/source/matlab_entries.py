"""What printed MATLAB programs carry along for entries: functions where they call them."""

from __future__ import annotations

ENTRY_SOURCES = (
    """
function x = digamma(x)
  low = x <= 0;
  z = x;
  z(low) = 1 - x(low);
  y = psi(z);
  y(low) = y(low) - pi ./ tan(pi * x(low));
  y(low & x == floor(x)) = NaN;
  x = y;
end
""",
    """
function x = gammasgn(x)
% The sign of the gamma function.
  odd = mod(floor(x), 2) == 1;
  x = cast(1 - 2 * (x < 0 & odd), class(x));
end
""",
    """
function y = inverse_mills(n, x)
% The derivative of order n of the ratio of the normal density to its distribution.
  if ~isscalar(n)
    x = x + 0 * n;
    n = n + 0 * x;
    y = x;
    for order = unique(n(:))'
      y(n == order) = inverse_mills(order, x(n == order));
    end
    return
  end
  limits = [-8 8; -4 24; -3 40];
  low = limits(min(n, 2) + 1, 1);
  depth = limits(min(n, 2) + 1, 2);
  high = min(max(x, low), 60);
  h = {exp(-high .* high / 2) ./ (erfc(-high / sqrt(2)) / 2 * sqrt(2 * pi))};
  u = {high + h{1}};
  for k = 1:n
    h{k + 1} = 0;
    for j = 0:k - 1
      h{k + 1} = h{k + 1} - nchoosek(k - 1, j) * h{j + 1} .* u{k - j};
    end
    u{k + 1} = h{k + 1} + (k == 1);
  end
  z = -min(x, low);
  t = {2 * (depth + 1) ./ (z + sqrt(z .* z + 4 * (depth + 1)))};
  for m = 1:n
    t{m + 1} = t{m};
    for j = 1:m - 1
      t{m + 1} = t{m + 1} - t{j + 1} .* t{m - j + 1};
    end
    t{m + 1} = t{m + 1} ./ (2 * t{1} + z);
  end
  for k = depth:-1:1
    below = t;
    below{1} = z + t{1};
    if n > 0
      below{2} = t{2} - 1;
    end
    t{1} = k ./ below{1};
    for m = 1:n
      t{m + 1} = 0;
      for j = 1:m
        t{m + 1} = t{m + 1} - below{j + 1} .* t{m - j + 1};
      end
      t{m + 1} = t{m + 1} ./ below{1};
    end
  end
  tail = t{n + 1} * factorial(n);
  if n == 0
    tail = tail + z;
  elseif n == 1
    tail = tail - 1;
  end
  y = where(x > low, h{n + 1}, tail);
end
""",
    """
function y = log_gamma(x)
% The logarithm of the absolute value of the gamma function.
  low = x <= 0;
  y = x;
  y(~low) = gammaln(x(~low));
  y(low) = log(pi) - log(abs(sin(pi * x(low)))) - gammaln(1 - x(low));
  y(low & x == floor(x)) = Inf;
end
""",
    """
function y = log_ndtr(x)
% The logarithm of the normal distribution function.
  y = x;
  low = x < -1;
  y(low) = log(erfcx(-x(low) / sqrt(2)) / 2) - x(low) .^ 2 / 2;
  y(~low) = log1p(-erfc(x(~low) / sqrt(2)) / 2);
end
""",
    """
function c = logaddexp(a, b)
% log(exp(a) + exp(b)) without overflow.
  top = max(a, b);
  gap = abs(a - b);
  gap(isnan(gap) & ~isnan(top)) = 0;
  c = top + log1p(exp(-gap));
end
""",
    """
function y = polygamma(n, x)
% The derivative of order n of digamma.
  x = x + 0 * n;
  n = n + 0 * x;
  y = x;
  for order = unique(n(:))'
    chosen = n == order;
    y(chosen) = psi(order, abs(x(chosen)));
    chosen = chosen & x < 0;
    if order == 0
      y(chosen) = psi(x(chosen));
    else
      below = -x(chosen) - floor(-x(chosen));
      past = psi(order, below) - psi(order, 1 - x(chosen));
      y(chosen) = psi(order, 1 - below) - (-1) ^ order * past;
    end
  end
end
""",
    """
function x = rint(x)
% The nearest integer, an even one of two.
  half = abs(x - fix(x)) == 0.5;
  x(half) = 2 * round(x(half) / 2);
  x(~half) = round(x(~half));
end
""",
    """
function y = spherical_jn(n, x)
% The spherical Bessel function of the first kind.
  y = sqrt(pi ./ (2 * abs(x))) .* besselj(n + 0.5 + 0 * x, abs(x) + 0 * n);
  y = y .* where(mod(n, 2) == 1, sign(x), 1);
  y = where(x == 0, double(n == 0), y);
end
""",
    """
function y = stdtr(df, t)
% Student's distribution function.
  df = df + 0 * t;
  t = t + 0 * df;
  far = betainc(df ./ (df + t .^ 2), df / 2, 0.5 + 0 * t) / 2;
  near = 0.5 - betainc(t .^ 2 ./ (df + t .^ 2), 0.5 + 0 * t, df / 2) / 2;
  far = where(t .^ 2 < df, near, far);
  y = where(t < 0, far, 1 - far);
end
""",
    """
function x = where(c, a, b)
% a where c holds, b elsewhere.
  shape = true(size(c)) & true(size(a)) & true(size(b));
  kind = class(zeros(class(a)) + zeros(class(b)));
  a = cast(a .* shape, kind);
  x = cast(b .* shape, kind);
  c = c & shape;
  x(c) = a(c);
end
""",
    """
function y = xlogy(a, b)
% a .* log(b), and 0 where a is 0.
  y = where(a == 0 & ~isnan(b), 0, a .* log(b));
end
""",
)
