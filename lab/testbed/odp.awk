# Makes results/papers/odp.md of the output of BenchmarkOnDemandPaging, with the guest's kernel in its first line.
NR == 1 {
  print "# The kernel's on-demand paging beside registrations\n"
  print "Made by \"make bench-odp\" from odp.txt; do not edit. " $0 ", Soft-RoCE in an emulated machine: an RDMA"
  print "write is slow there, and only what is pinned and how the rest compares says something. Soft-RoCE of Linux 6.12 has no"
  print "on-demand paging. Both ends of a write have regions of the same kind. After a change of the mapping, a pinned"
  print "region has to be made anew, which counts; one on demand follows by itself, and sends the right data.\n"
  print "| region | size | pinned | register | first write | next write | write after a change | deregister |"
  print "|---|---|---:|---:|---:|---:|---:|---:|"
}
/^BenchmarkOnDemandPaging\/.*-ns/ {
  split($1, name, "/")
  sub(/-[0-9]+$/, "", name[3])
  sub(/_/, " ", name[3])
  for (i = 3; i < NF; i += 2) value[$(i + 1)] = $i
  printf "| %s | %s | %d KiB |", name[2], name[3], value["pinned-B"] / 1024
  split("register first-write write write-after-remap deregister", column, " ")
  for (i = 1; i <= 5; i++) printf " %.2f ms |", value[column[i] "-ns"] / 1e6
  print ""
}
