import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.springframework.data.domain.Range;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.stream.Consumer;
import org.springframework.data.redis.connection.stream.MapRecord;
import org.springframework.data.redis.connection.stream.ReadOffset;
import org.springframework.data.redis.connection.stream.StreamOffset;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.RedisOperations;
import org.springframework.data.redis.core.ScanOptions;
import org.springframework.data.redis.core.SessionCallback;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.core.script.DefaultRedisScript;
import org.springframework.data.redis.listener.ChannelTopic;
import org.springframework.data.redis.listener.RedisMessageListenerContainer;
import org.springframework.data.redis.support.atomic.RedisAtomicLong;
import org.springframework.data.redis.support.collections.DefaultRedisMap;

/** Spring Data Redis on Lettuce: SpringPeer PORT. Prints what comes of it, and "ok". */
public final class SpringPeer {
    public static void main(String[] args) throws Exception {
        LettuceConnectionFactory factory =
            new LettuceConnectionFactory(new RedisStandaloneConfiguration("127.0.0.1", Integer.parseInt(args[0])));
        factory.afterPropertiesSet();
        factory.start();
        StringRedisTemplate template = new StringRedisTemplate(factory);
        values(template);
        structures(template);
        streams(template);
        messages(template, factory);
        together(template);
        factory.destroy();
        System.out.println("ok");
    }

    private static void values(StringRedisTemplate template) {
        var values = template.opsForValue();
        values.set("k", "v", Duration.ofHours(1));
        System.out.println("set " + values.get("k") + " " + values.setIfAbsent("k", "w") + " " + (template.getExpire("k") > 3500));
        values.multiSet(Map.of("a", "1", "b", "2"));
        System.out.println("many " + values.multiGet(List.of("a", "b", "c")) + " " + values.increment("n", 5) + " "
            + values.getAndDelete("a") + " " + template.hasKey("a"));
        System.out.println("atomic " + new RedisAtomicLong("long", template.getConnectionFactory(), 3).addAndGet(4));
    }

    private static void structures(StringRedisTemplate template) {
        template.opsForHash().putAll("h", Map.of("f", "1", "g", "2"));
        System.out.println("hash " + new TreeMap<>(template.opsForHash().entries("h")) + " " + template.opsForHash().increment("h", "f", 2));
        template.opsForList().rightPushAll("l", "a", "b", "c");
        System.out.println("list " + template.opsForList().range("l", 0, -1) + " " + template.opsForList().leftPop("l", Duration.ofSeconds(1)));
        template.opsForZSet().add("z", "m", 1.5);
        template.opsForZSet().add("z", "o", 2.5);
        System.out.println("zset " + template.opsForZSet().rangeByScore("z", 1, 2) + " " + template.opsForZSet().incrementScore("z", "m", 3)
            + " " + template.opsForZSet().reverseRange("z", 0, -1));
        template.opsForSet().add("s", "x", "y");
        System.out.println("set " + new TreeSet<>(template.opsForSet().members("s")) + " " + template.opsForSet().isMember("s", "x", "q"));
        var map = new DefaultRedisMap<String, String>("map", template);
        map.put("k", "v");
        System.out.println("map " + map.putIfAbsent("k", "w") + " " + map.size());
        var found = new TreeSet<String>();
        try (var cursor = template.scan(ScanOptions.scanOptions().match("?").count(3).build())) {
            cursor.forEachRemaining(found::add);
        }
        System.out.println("scan " + found);
    }

    private static void streams(StringRedisTemplate template) {
        var streams = template.opsForStream();
        streams.add(MapRecord.create("st", Map.of("f", "v")));
        streams.createGroup("st", ReadOffset.from("0"), "g");
        var read = streams.read(Consumer.from("g", "c"), StreamOffset.create("st", ReadOffset.lastConsumed()));
        System.out.println("stream " + read.get(0).getValue() + " " + streams.pending("st", "g").getTotalPendingMessages() + " "
            + streams.acknowledge("g", read.get(0)) + " " + streams.range("st", Range.unbounded()).size() + " "
            + streams.groups("st").get(0).groupName());
    }

    private static void messages(StringRedisTemplate template, LettuceConnectionFactory factory) throws Exception {
        CountDownLatch seen = new CountDownLatch(1);
        RedisMessageListenerContainer container = new RedisMessageListenerContainer();
        container.setConnectionFactory(factory);
        container.addMessageListener((message, pattern) -> seen.countDown(), new ChannelTopic("news"));
        container.afterPropertiesSet();
        container.start();
        System.out.println("published " + template.convertAndSend("news", "hello") + " " + seen.await(30, TimeUnit.SECONDS));
        container.stop();
        container.destroy();
    }

    private static void together(StringRedisTemplate template) {
        List<Object> said = template.execute(new SessionCallback<>() {
            @Override
            @SuppressWarnings("unchecked")
            public List<Object> execute(RedisOperations operations) {
                operations.watch("n");
                operations.multi();
                operations.opsForValue().increment("n");
                operations.opsForList().rightPush("l", "d");
                return operations.exec();
            }
        });
        System.out.println("transaction " + said);
        var piped = template.executePipelined((org.springframework.data.redis.core.RedisCallback<Object>) connection -> {
            for (int n = 0; n < 100; n++) {
                connection.stringCommands().incr("p".getBytes());
            }
            return null;
        });
        System.out.println("pipelined " + piped.size() + " " + piped.get(99));
        var script = new DefaultRedisScript<>("return redis.call('incrby', KEYS[1], ARGV[1])", Long.class);
        System.out.println("script " + template.execute(script, List.of("n"), "10") + " " + template.execute(script, List.of("n"), "1"));
    }
}
