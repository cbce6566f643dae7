# The real programs that read or run what provision renders beside a Dockerfile, from Debian's packages.
# hadolint global ignore=DL3003,DL3008,DL4006
# Of one use: no version is pinned, a folder holds for one command, and `tee` in the pipe is what is meant.
# Lmod is unpacked, not installed: Debian lets only one of the two programs for environment modules be installed.
ARG BASE
FROM $BASE
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
        docker-cli docker-compose docker-buildx nodejs \
        squashfs-tools libseccomp2 libsubid5 uidmap fuse2fs squashfuse fuse-overlayfs fakeroot \
        environment-modules tcl lua5.3 lua-posix lua-filesystem lua-term \
        dnf dnf-plugins-core createrepo-c rpm \
    && cd /tmp && apt-get download lmod && dpkg -x lmod_*.deb / \
    && rm -rf lmod_*.deb /var/lib/apt/lists/*
# Apptainer is in Debian's unstable alone; in a container it may not give a container more rights than it has itself.
RUN echo 'deb http://deb.debian.org/debian sid main' > /etc/apt/sources.list.d/sid.list \
    && apt-get -o Acquire::Check-Valid-Until=false update && cd /tmp && apt-get download apptainer && dpkg -x apptainer_*.deb / \
    && rm -rf apptainer_*.deb /etc/apt/sources.list.d/sid.list /var/lib/apt/lists/* \
    && sed -i 's/^root default capabilities.*/root default capabilities = no/' /etc/apptainer/apptainer.conf \
    && echo root:100000:65536 | tee /etc/subuid > /etc/subgid
