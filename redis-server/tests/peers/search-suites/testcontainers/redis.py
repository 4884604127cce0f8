import testcontainers


class RedisContainer:
    def __init__(self, *_, **__):
        pass

    def start(self):
        return self

    def stop(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def get_container_host_ip(self):
        return testcontainers.HOST

    def get_exposed_port(self, _):
        return testcontainers.port()
