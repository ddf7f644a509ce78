# Second stage of a guest, run as root in the host's root file system: give the
# node its RDMA device, run the command, leave its exit status for run.sh.
export PATH=/usr/local/go/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root OUT=/run/testbed/out
run=/run/testbed
export PINWHEEL_REQUIRE_RDMA=1 # a test without a device fails here
. $run/settings # TESTBED_NODE, TESTBED_NODES, directory; console, of the kernel, and output, on which the command speaks
stty -F /dev/$output raw -echo
exec < /dev/null > /dev/$output 2>&1

node_addr() { echo "10.99.0.$((${1} + 1))"; }
TESTBED_ADDR=$(node_addr "$TESTBED_NODE")
TESTBED_PEER=$(node_addr "$((1 - TESTBED_NODE))")
export TESTBED_NODE TESTBED_NODES TESTBED_ADDR TESTBED_PEER

# die MESSAGE: the machine is not as a command may expect it; not the command's fault.
die() { echo "testbed: $*" | tee /dev/$console; echo 125 > $run/exit-status; exit; }

mount -t tracefs tracefs /sys/kernel/tracing
mount -t bpf bpf /sys/fs/bpf
mount -t cgroup2 cgroup2 /sys/fs/cgroup && echo +rdma > /sys/fs/cgroup/cgroup.subtree_control
ip link set lo up
hostname "node$TESTBED_NODE"

# 4400 bytes carry the largest RoCE payload, 4096. crc32_generic is what
# rdma_rxe looks up by name at run time, so no module dependency names it.
if [ "$TESTBED_NODES" = 1 ]; then
  modprobe dummy && ip link add net0 type dummy || die "no dummy network device"
else
  modprobe virtio_net || die "no virtio network device"
  ip link set "$(basename /sys/bus/virtio/drivers/virtio_net/virtio*/net/*)" name net0 || die "no network to the other node"
  # For tc(8), which breaks the network: the kernel does not find modprobe by itself, as its root is the RAM disk.
  modprobe -a sch_netem sch_ingress cls_flower act_gact || die "no traffic control in this kernel"
fi
ip link set net0 mtu 4400 up && ip addr add "$TESTBED_ADDR/24" dev net0 || die "net0 does not come up"
modprobe -q crc32_generic || true # newer kernels have no such module, and need none
modprobe -a rdma_rxe rdma_ucm ib_uverbs || die "no Soft-RoCE in this kernel"
rdma link add rxe0 type rxe netdev net0 || die "no rxe0 on net0"

ulimit -l unlimited
ulimit -c 0
cd "$directory" || die "no $directory in the guest"
touch $run/booted
# Through a pipe: a program must not take the serial line for a terminal and draw on it.
bash $run/command 2>&1 | cat
echo "${PIPESTATUS[0]}" > $run/exit-status
