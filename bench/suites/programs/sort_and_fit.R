# Sorts numbers by radix, and fits a line to them.
set.seed(1)
x <- runif(5e6)
s <- sort(x)
cat(s[2.5e6], "\n")
y <- 3 * x + rnorm(5e6)
cat(round(cov(x, y) / var(x), 9), "\n")
