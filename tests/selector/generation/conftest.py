"""One thread for torch: the model is tiny, and threads that wait for each other on shared cores cost a hundredfold."""

import torch

torch.set_num_threads(1)
