# Medians, for the scripts that compare runs: awk "$(cat median.awk)"'...'. A list is
# numbers with spaces between. No features of one awk only.

# sorted(LIST, A): the numbers of LIST into A, from 1 on, ascending; returns how many.
function sorted(list, a,  n, i, j, t) {
  n = split(list, a, " ")
  for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++) if (a[j] + 0 < a[i] + 0) { t = a[i]; a[i] = a[j]; a[j] = t }
  return n
}

# median(LIST): the lower one; 0 of none.
function median(list,  a, n) { n = sorted(list, a); return n ? a[int((n + 1) / 2)] : 0 }
