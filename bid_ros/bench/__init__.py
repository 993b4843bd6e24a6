"""The bench: compares decoders in simulation, with many environments in lockstep. A bench can be resumed.

A :class:`BenchCell` is a decoder with its settings under given disturbances. A :class:`Unit` is a batch of its
episodes. The numbers of an episode depend only on its cell, seed and index, not on its batch or process.
"""
