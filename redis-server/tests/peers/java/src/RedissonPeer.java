import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.redisson.Redisson;
import org.redisson.api.RBatch;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RDelayedQueue;
import org.redisson.api.RLock;
import org.redisson.api.RMapCache;
import org.redisson.api.RRateLimiter;
import org.redisson.api.RScoredSortedSet;
import org.redisson.api.RScript;
import org.redisson.api.RSemaphore;
import org.redisson.api.RTopic;
import org.redisson.api.RTransaction;
import org.redisson.api.RateType;
import org.redisson.api.RedissonClient;
import org.redisson.api.TransactionOptions;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/** Redisson's locks, collections, queues and messages: RedissonPeer PORT. Prints what comes of them, and "ok". */
public final class RedissonPeer {
    public static void main(String[] args) throws Exception {
        Config config = new Config();
        config.setCodec(StringCodec.INSTANCE);
        config.useSingleServer().setAddress("redis://127.0.0.1:" + args[0]).setConnectionMinimumIdleSize(2);
        RedissonClient client = Redisson.create(config);
        try {
            locks(client);
            collections(client);
            queues(client);
            messages(client);
            together(client);
        } finally {
            client.shutdown();
        }
        System.out.println("ok");
    }

    /** Twenty threads add to a number that only a lock protects. */
    private static void locks(RedissonClient client) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(20);
        for (int n = 0; n < 20; n++) {
            threads.submit(() -> {
                RLock lock = client.getLock("lock");
                for (int round = 0; round < 10; round++) {
                    lock.lock();
                    try {
                        long before = Long.parseLong(client.<String>getBucket("number").get() == null
                            ? "0" : client.<String>getBucket("number").get());
                        client.<String>getBucket("number").set(Long.toString(before + 1));
                    } finally {
                        lock.unlock();
                    }
                }
            });
        }
        threads.shutdown();
        System.out.println("locked " + threads.awaitTermination(60, TimeUnit.SECONDS) + " " + client.getBucket("number").get());
        RSemaphore semaphore = client.getSemaphore("semaphore");
        System.out.println("semaphore " + semaphore.trySetPermits(2) + " " + semaphore.tryAcquire() + " " + semaphore.tryAcquire()
            + " " + semaphore.tryAcquire());
        RRateLimiter limiter = client.getRateLimiter("limiter");
        limiter.trySetRate(RateType.OVERALL, 2, 1, org.redisson.api.RateIntervalUnit.HOURS);
        System.out.println("rate " + limiter.tryAcquire() + " " + limiter.tryAcquire() + " " + limiter.tryAcquire());
    }

    private static void collections(RedissonClient client) {
        Map<String, String> map = client.getMap("map");
        map.put("a", "1");
        System.out.println("map " + map.putIfAbsent("a", "2") + " " + map.merge("a", "x", String::concat) + " " + new TreeMap<>(map));
        RMapCache<String, String> cache = client.getMapCache("cache");
        cache.put("k", "v", 1, TimeUnit.HOURS);
        cache.put("gone", "v", 1, TimeUnit.MILLISECONDS);
        long end = System.currentTimeMillis() + 30000;
        while (cache.containsKey("gone") && System.currentTimeMillis() < end) {
            Thread.onSpinWait();
        }
        System.out.println("cache " + cache.get("k") + " " + cache.get("gone"));
        RScoredSortedSet<String> set = client.getScoredSortedSet("scores");
        set.add(2, "b");
        set.add(1, "a");
        System.out.println("scores " + set.addScoreAndGetRank("a", 5) + " " + set.readAll() + " " + set.pollFirst());
        client.getList("list").addAll(List.of("x", "y", "z"));
        System.out.println("list " + client.getList("list").subList(1, 3) + " " + client.getAtomicLong("counter").addAndGet(7));
        System.out.println("bits " + client.getBitSet("bits").set(100, true) + " " + client.getBitSet("bits").cardinality());
        client.getHyperLogLog("log").addAll(List.of("a", "b", "c"));
        System.out.println("log " + client.getHyperLogLog("log").count());
    }

    private static void queues(RedissonClient client) throws Exception {
        RBlockingQueue<String> queue = client.getBlockingQueue("queue");
        AtomicReference<String> taken = new AtomicReference<>();
        Thread taker = new Thread(() -> {
            try {
                taken.set(queue.poll(30, TimeUnit.SECONDS));
            } catch (InterruptedException error) {
                taken.set(error.toString());
            }
        });
        taker.start();
        queue.offer("job");
        taker.join();
        System.out.println("queue " + taken.get());
        RDelayedQueue<String> delayed = client.getDelayedQueue(queue);
        delayed.offer("later", 200, TimeUnit.MILLISECONDS);
        System.out.println("delayed " + queue.poll(30, TimeUnit.SECONDS));
        delayed.destroy();
    }

    private static void messages(RedissonClient client) throws Exception {
        RTopic topic = client.getTopic("topic");
        CountDownLatch seen = new CountDownLatch(2);
        topic.addListener(String.class, (channel, message) -> seen.countDown());
        client.getPatternTopic("to*").addListener(String.class, (pattern, channel, message) -> seen.countDown());
        System.out.println("published " + topic.publish("hello") + " " + seen.await(30, TimeUnit.SECONDS));
    }

    private static void together(RedissonClient client) {
        RBatch batch = client.createBatch();
        batch.getBucket("b:1").setAsync("1");
        batch.getAtomicLong("b:2").incrementAndGetAsync();
        System.out.println("batch " + batch.execute().getResponses().size());
        RTransaction transaction = client.createTransaction(TransactionOptions.defaults());
        transaction.<String>getBucket("t").set("v");
        transaction.<String, String>getMap("map").put("b", "2");
        transaction.commit();
        System.out.println("transaction " + client.getBucket("t").get() + " " + new TreeMap<>(client.<String, String>getMap("map")));
        Object said = client.getScript(StringCodec.INSTANCE).eval(RScript.Mode.READ_WRITE,
            "redis.call('set', KEYS[1], ARGV[1]) return redis.call('get', KEYS[1])", RScript.ReturnType.VALUE, List.of("s"), "v");
        System.out.println("script " + said);
    }
}
