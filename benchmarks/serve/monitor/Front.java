import com.sun.net.httpserver.HttpServer;
import java.io.BufferedReader;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.lucene.analysis.core.KeywordAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.DoublePoint;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.StringField;
import org.apache.lucene.index.Term;
import org.apache.lucene.monitor.Monitor;
import org.apache.lucene.monitor.MonitorQuery;
import org.apache.lucene.monitor.QueryMatch;
import org.apache.lucene.monitor.TermFilteredPresearcher;
import org.apache.lucene.search.BooleanClause.Occur;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.TermQuery;

/**
 * Lucene's Monitor over HTTP, as little as is needed to ask it what bittern serve is asked.
 *
 * <p>It reads the three forms of subscriptions of benchmarks.streaming.world, and flat JSON events.
 * Names and whole numbers that are compared for equality are terms, the others points.
 */
public final class Front {
    private static final Pattern PREDICATE =
            Pattern.compile("(\\w+) (<=|>=|<|=) ('([^']*)'|[0-9.]+)");
    private static final Pattern MEMBER =
            Pattern.compile("\"(\\w+)\"\\s*:\\s*(?:\"([^\"]*)\"|(-?[0-9.eE+-]+))");
    private static final int AT_A_TIME = 10_000;

    private Front() {}

    /** Argument: a file of subscriptions, each an id, a tab and an expression. */
    public static void main(String[] files) throws Exception {
        Monitor monitor = new Monitor(new KeywordAnalyzer(), new TermFilteredPresearcher());
        List<MonitorQuery> some = new ArrayList<>();
        try (BufferedReader lines = Files.newBufferedReader(Path.of(files[0]))) {
            for (String line; (line = lines.readLine()) != null; ) {
                int tab = line.indexOf('\t');
                some.add(new MonitorQuery(line.substring(0, tab), read(line.substring(tab + 1))));
                if (some.size() == AT_A_TIME) {
                    monitor.register(some);
                    some.clear();
                }
            }
        }
        monitor.register(some);
        InetSocketAddress here = new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
        HttpServer server = HttpServer.create(here, 1000);
        server.setExecutor(Executors.newFixedThreadPool(2));
        server.createContext(
                "/v1/match",
                exchange -> {
                    byte[] event = exchange.getRequestBody().readAllBytes();
                    byte[] told = match(monitor, new String(event, StandardCharsets.UTF_8));
                    exchange.getResponseHeaders().set("Content-Type", "application/json");
                    exchange.sendResponseHeaders(200, told.length);
                    exchange.getResponseBody().write(told);
                    exchange.close();
                });
        server.start();
        System.out.println("listening on http://127.0.0.1:" + server.getAddress().getPort());
    }

    private static Query read(String expression) {
        BooleanQuery.Builder all = new BooleanQuery.Builder();
        BooleanQuery.Builder any = new BooleanQuery.Builder();
        int alternatives = expression.indexOf('(');
        Matcher each = PREDICATE.matcher(expression);
        while (each.find()) {
            if (alternatives >= 0 && each.start() > alternatives) {
                any.add(predicate(each), Occur.SHOULD);
            } else {
                all.add(predicate(each), Occur.MUST);
            }
        }
        if (alternatives >= 0) {
            all.add(any.build(), Occur.MUST);
        }
        return all.build();
    }

    private static Query predicate(Matcher found) {
        String name = found.group(1);
        if (found.group(2).equals("=")) {
            String value = found.group(4) == null ? found.group(3) : found.group(4);
            return new TermQuery(new Term(name, value));
        }
        double bound = Double.parseDouble(found.group(3));
        double least = Double.NEGATIVE_INFINITY;
        double most = Double.POSITIVE_INFINITY;
        switch (found.group(2)) {
            case "<=" -> most = bound;
            case "<" -> most = DoublePoint.nextDown(bound);
            default -> least = bound;
        }
        return DoublePoint.newRangeQuery(name + ".number", least, most);
    }

    private static byte[] match(Monitor monitor, String event) throws IOException {
        Document document = new Document();
        Matcher each = MEMBER.matcher(event);
        while (each.find()) {
            String number = each.group(3);
            String term = number == null ? each.group(2) : number;
            document.add(new StringField(each.group(1), term, Field.Store.NO));
            if (number != null) {
                document.add(new DoublePoint(each.group(1) + ".number", Double.parseDouble(number)));
            }
        }
        StringBuilder told = new StringBuilder("{\"version\":0,\"matches\":[");
        String between = "\"";
        for (QueryMatch own : monitor.match(document, QueryMatch.SIMPLE_MATCHER).getMatches()) {
            told.append(between).append(own.getQueryId()).append('"');
            between = ",\"";
        }
        return told.append("]}").toString().getBytes(StandardCharsets.UTF_8);
    }
}
