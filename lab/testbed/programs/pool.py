"""Exchanges by mpi4py while Python's multiprocessing forks workers that read and write what was registered."""
import multiprocessing

from mpi4py import MPI

BYTES = 1 << 20
world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
sent, got = bytearray(BYTES), bytearray(BYTES)


def fill(who, step):
    return bytes((who * 31 + step * 7 + i) & 255 for i in range(256)) * (BYTES // 256)


def exchange(step):
    sent[:] = fill(rank, step)
    world.Sendrecv(sent, (rank + 1) % size, recvbuf=got, source=(rank - 1) % size)
    return got == fill((rank - 1) % size, step)


def work(step):
    same = sent == fill(rank, step)
    sent[:] = bytes(sent)  # the worker has pages of its own from here on
    return same


def alone(step):
    raise SystemExit(0 if work(step) else 1)


right = True
for step in range(4):
    right &= exchange(step)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        later = pool.map_async(work, [step] * 2, chunksize=1)
        right &= exchange(100 + step)
        right &= all(later.get())
    right &= exchange(200 + step)
    worker = multiprocessing.get_context("fork").Process(target=alone, args=(200 + step,))
    worker.start()
    right &= exchange(300 + step)
    worker.join()
    right &= worker.exitcode == 0
right = world.allreduce(int(right), MPI.MIN)
if rank == 0:
    print(f"pool: {size} ranks, {'data right' if right else 'DATA WRONG'}")
raise SystemExit(0 if right else 1)
