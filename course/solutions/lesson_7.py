"""Solutions of lesson 7, a reward network."""


def shaped(reward, phi, next_phi, gamma):
    return reward + gamma * next_phi - phi


def added_return(phi, gamma):
    steps = len(phi) - 1
    return gamma**steps * phi[-1] - phi[0]
