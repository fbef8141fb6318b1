"""The same small workloads on every engine: calls, rates, arrays, starting, memory."""
