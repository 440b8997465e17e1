raise ValueError("nothing to do")
