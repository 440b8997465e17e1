"""Square roots by the processes of joblib (loky)."""

import math

from joblib import Parallel, delayed

if __name__ == "__main__":
    print(sum(Parallel(n_jobs=3)(delayed(math.sqrt)(number**2) for number in range(60))))
