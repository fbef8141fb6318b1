"""Shared data through a compute grid against the same data from a data grid: which is faster, over
size and readers, and where that turns.

What is compared. A program holds S bytes, and n tasks on n cores need all of them. Nothing else
continues: tasks have no input, no output, and nothing to compute.

- Through the compute grid: from the moment the program hands the data over until the last of n
  tasks on n workers has it, that is, has read a byte of each of its pages. The workers are there
  already. It is a run of the compute-grid benchmark with that SharedDataSize, NTasks = NNodes = n
  and a warm start: t = 0 is just before the data is given to the engine, and the end is the last
  calc-in. Tasks are held so long that no worker takes two.
- From the data grid: from the moment the program begins to put the data until the last of n
  clients has read all of it. It is a case of the data-grid benchmark whose tasks only read shared
  objects: the time of loading, and the time from the instant at which all clients begin to the
  latest end of a task. Members and clients are there already.
- From the data grid with the data there already: the same without the loading.

record.py is what is kept of a measurement, experiment.py makes them, answer.py puts repeats
together and finds where one becomes faster, models.py what each side is predicted to take.
"""
