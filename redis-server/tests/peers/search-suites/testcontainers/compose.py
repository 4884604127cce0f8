import testcontainers


class DockerCompose:
    def __init__(self, *_, **__):
        pass

    def start(self):
        pass

    def stop(self):
        pass

    def get_service_host_and_port(self, *_):
        return testcontainers.HOST, testcontainers.port()
