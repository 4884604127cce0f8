package com.redis.testcontainers;

/** Stands for the class of this name, as {@link RedisContainer} does. */
public class RedisStackContainer extends RedisContainer {
    public RedisStackContainer(Image image) {
        super(image);
    }

    @Override
    public RedisStackContainer withEnv(String name, String value) {
        super.withEnv(name, value);
        return this;
    }
}
