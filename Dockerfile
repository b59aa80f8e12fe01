# vknerf in a container, on a GPU or without one: docs/containers.md tells how it is built and run.
#     docker build -t vknerf .
# Debian 13 for its lavapipe and drivers; --build-arg DEBIAN=bookworm takes Debian 12.
ARG DEBIAN=trixie

FROM debian:${DEBIAN}-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates dpkg-dev file git
COPY . /vknerf
RUN /vknerf/tools/package.sh && mkdir /packages && mv /vknerf/build/packages/vknerf_*.deb /packages/vknerf.deb

FROM debian:${DEBIAN}-slim
# What the package recommends (poses, videos, the viewer, the drivers of AMD, Intel and of CPUs), and what NVIDIA's
# driver wants of the system, which comes with the container toolkit.
RUN --mount=type=bind,from=build,source=/packages,target=/packages \
    apt-get update && apt-get install -y --no-install-recommends /packages/vknerf.deb \
        colmap ffmpeg libmicrohttpd12 libtiff6 libwebp7 mesa-vulkan-drivers libegl1 libx11-6 libxext6 && \
    rm -rf /var/lib/apt/lists/*
# Where the toolkit brings no such file; where it does, its own stands in the place of this one.
RUN mkdir -p /etc/vulkan/icd.d && \
    echo '{"file_format_version": "1.0.0", "ICD": {"library_path": "libGLX_nvidia.so.0", "api_version": "1.3.0"}}' \
        >/etc/vulkan/icd.d/nvidia_icd.json && \
    mkdir -m 1777 /cache /work
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=graphics,compute,utility XDG_CACHE_HOME=/cache
VOLUME /cache
WORKDIR /work
ENTRYPOINT ["vknerf"]
CMD ["--help"]
