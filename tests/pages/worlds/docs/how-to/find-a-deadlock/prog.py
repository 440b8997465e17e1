import multiprocessing
import time


def work(first, second, arrived):
    with first:
        arrived.wait()
        with second:
            print("never")


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    a, b = multiprocessing.Lock(), multiprocessing.Lock()
    arrived = multiprocessing.Barrier(2)
    workers = [multiprocessing.Process(target=work, args=(*pair, arrived)) for pair in ((a, b), (b, a))]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
