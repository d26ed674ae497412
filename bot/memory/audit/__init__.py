"""Whether memory is in order: what each fact rests on, what no longer holds, and whether the books agree."""
