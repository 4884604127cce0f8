package com.redis.testcontainers;

import redis.clients.jedis.Jedis;

/** Stands for the class of this name, which starts containers: the server runs already, at the port that SEARCH_SUITE_PORT names. */
public class RedisContainer {
    public static final Image DEFAULT_IMAGE_NAME = new Image();
    public static final String DEFAULT_TAG = "";

    private static final String OPTION = "--requirepass ";

    private String password = "";

    public record Image() {
        public Image withTag(String tag) {
            return this;
        }
    }

    public RedisContainer(Image image) {}

    public RedisContainer withEnv(String name, String value) {
        password = value.startsWith(OPTION) ? value.substring(OPTION.length()) : "";
        return this;
    }

    public void start() {
        try (Jedis server = new Jedis(getHost(), getFirstMappedPort())) {
            server.configSet("requirepass", password);
        }
    }

    public void stop() {
        try (Jedis server = new Jedis(getHost(), getFirstMappedPort())) {
            if (!password.isEmpty()) {
                server.auth(password);
            }
            server.flushAll();
            server.configSet("requirepass", "");
        }
    }

    public String getHost() {
        return "127.0.0.1";
    }

    public int getFirstMappedPort() {
        return Integer.parseInt(System.getenv("SEARCH_SUITE_PORT"));
    }
}
