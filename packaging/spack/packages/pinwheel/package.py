# Copyright Spack Project Developers. See COPYRIGHT file for details.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

from spack_repo.builtin.build_systems.makefile import MakefilePackage

from spack.package import *


class Pinwheel(MakefilePackage):
    """Pinwheel registers RDMA buffers just in time, so that MPI programs and
    RDMA transports keep less memory pinned."""

    homepage = "https://github.com/pinwheel-rdma/pinwheel"
    git = "https://github.com/pinwheel-rdma/pinwheel.git"

    license("Apache-2.0")

    version("main", branch="main")

    variant("mpi", default=True, description="Have an MPI library to run programs with")
    variant("ucx", default=False, description="Have UCX over verbs as the transport below it")

    depends_on("c", type="build")
    depends_on("git", type="build")
    depends_on("gmake", type="build")
    depends_on("go@1.26:", type="build")
    depends_on("rdma-core", type=("link", "run"))
    depends_on("mpi", type="run", when="+mpi")
    depends_on("ucx+verbs+rc+ud", type="run", when="+ucx")

    requires("platform=linux", msg="Pinwheel watches memory mappings of Linux")

    def setup_build_environment(self, env: EnvironmentModifications) -> None:
        env.set("GOTOOLCHAIN", "local")
        env.set("GOPATH", join_path(self.stage.path, "go"))
        env.set("GOFLAGS", "-modcacherw")

    def build(self, spec: Spec, prefix: Prefix) -> None:
        make("build")

    def install(self, spec: Spec, prefix: Prefix) -> None:
        make("install", f"PREFIX={prefix}")
