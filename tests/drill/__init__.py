"""The drill: real workers and producers on a real store, killed, frozen and cut off at random; a ledger of what ran.

`python -m tests.drill` runs it; knows duly only through its public interface, its command line and the inspection
protocol that the closing audit reads.
"""
