"""Streams through arrays of NumPy, sorts one, transforms one, and multiplies matrices."""

import numpy

count = 12_000_000
numbers = numpy.random.default_rng(1)
a, b = numbers.random(count), numbers.random(count)
c = a * b + a
print(round(float(c.sum()), 3), int(numpy.argmax(c)))
a.sort()
print(float(a[count // 2]))
print(round(float(numpy.abs(numpy.fft.rfft(b[: 1 << 22])).sum()), 3))
square = numbers.random((1000, 1000))
print(round(float((square @ square).trace()), 6))
