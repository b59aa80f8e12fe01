# Builds a container image of vknerf for machines with and without a GPU; see docs/containers.md.
#     docker build -t vknerf .
# Debian 13 because of its lavapipe and drivers; --build-arg DEBIAN=bookworm selects Debian 12.
ARG DEBIAN=trixie

FROM debian:${DEBIAN}-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates dpkg-dev file git
COPY . /vknerf
RUN /vknerf/tools/package.sh && mkdir /packages && mv /vknerf/build/packages/vknerf_*.deb /packages/vknerf.deb

FROM debian:${DEBIAN}-slim
# The packages that vknerf recommends (poses, videos, viewer, drivers of AMD, Intel and CPUs), and libraries that
# NVIDIA's driver needs; the container toolkit provides the driver itself.
RUN --mount=type=bind,from=build,source=/packages,target=/packages \
    apt-get update && apt-get install -y --no-install-recommends /packages/vknerf.deb \
        colmap ffmpeg libexpat1 libmicrohttpd12 libtiff6 libwebp7 mesa-vulkan-drivers libegl1 libx11-6 libxext6 && \
    rm -rf /var/lib/apt/lists/*
# For toolkits that provide no such file; the file of other toolkits replaces this one.
RUN mkdir -p /etc/vulkan/icd.d && \
    echo '{"file_format_version": "1.0.0", "ICD": {"library_path": "libGLX_nvidia.so.0", "api_version": "1.3.0"}}' \
        >/etc/vulkan/icd.d/nvidia_icd.json && \
    mkdir -m 1777 /cache /work
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=graphics,compute,utility XDG_CACHE_HOME=/cache
VOLUME /cache
WORKDIR /work
ENTRYPOINT ["vknerf"]
CMD ["--help"]
