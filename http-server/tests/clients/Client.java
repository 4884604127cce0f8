// Java's HttpClient over HTTP/1.1 and HTTP/2. Arguments: the address of a plain server, and of one with TLS.
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpClient.Version;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.security.cert.X509Certificate;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509ExtendedTrustManager;

public class Client {
    static void same(Object got, Object expected) {
        if (!got.equals(expected)) {
            throw new AssertionError(String.format("%.200s instead of %.200s", got, expected));
        }
    }

    static HttpRequest get(String url) {
        return HttpRequest.newBuilder(URI.create(url)).build();
    }

    static void talk(String base, Version version) throws Exception {
        SSLContext trusting = SSLContext.getInstance("TLS");
        trusting.init(null, new TrustManager[] {new Anyone()}, null);
        HttpClient client = HttpClient.newBuilder().version(version).sslContext(trusting).build();
        HttpResponse<String> hello = client.send(get(base + "/"), BodyHandlers.ofString());
        same(hello.body(), "Hello from Rust");
        same(hello.version(), version);
        List<CompletableFuture<HttpResponse<String>>> many = IntStream.range(0, 200)
            .mapToObj(n -> client.sendAsync(get(base + "/n" + n), BodyHandlers.ofString())).toList();
        for (int n = 0; n < 200; n++) {
            same(many.get(n).get().body(), "Hello, visitor! You've requested: /n" + n);
        }
        same(client.send(get(base + "/t/big"), BodyHandlers.ofByteArray()).body().length, 8 * 1024 * 1024);
        for (int length : new int[] {5, 300000}) {
            // On a new connection: its body comes with the upgrade, or behind it.
            HttpClient fresh = HttpClient.newBuilder().version(version).sslContext(trusting).build();
            String body = "x".repeat(length);
            HttpRequest post = HttpRequest.newBuilder(URI.create(base + "/t/echo")).POST(BodyPublishers.ofString(body)).build();
            same(fresh.send(post, BodyHandlers.ofString()).body(), body);
        }
    }

    public static void main(String[] servers) throws Exception {
        for (Version version : Version.values()) {
            talk("http://" + servers[0], version);
            talk("https://" + servers[1], version);
        }
        System.out.println("ok");
        System.exit(0);
    }

    /** Tests' servers have certificates of their own. */
    static class Anyone extends X509ExtendedTrustManager {
        public void checkClientTrusted(X509Certificate[] chain, String type) {}
        public void checkClientTrusted(X509Certificate[] chain, String type, Socket socket) {}
        public void checkClientTrusted(X509Certificate[] chain, String type, SSLEngine engine) {}
        public void checkServerTrusted(X509Certificate[] chain, String type) {}
        public void checkServerTrusted(X509Certificate[] chain, String type, Socket socket) {}
        public void checkServerTrusted(X509Certificate[] chain, String type, SSLEngine engine) {}
        public X509Certificate[] getAcceptedIssuers() { return new X509Certificate[0]; }
    }
}
