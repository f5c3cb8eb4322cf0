import java.io.PrintWriter;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Scanner;
import software.amazon.event.ruler.Machine;

/** event-ruler as a program that benchmarks.rivals asks; its docstring has what is said. */
public final class Ruler {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private Ruler() {}

    /** Arguments: patterns and events, one on each line, and where the answers go. */
    public static void main(String[] files) throws Exception {
        List<String> patterns = Files.readAllLines(Path.of(files[0]));
        List<String> events = Files.readAllLines(Path.of(files[1]));
        Machine machine = new Machine();
        long begin = THREADS.getCurrentThreadCpuTime();
        for (int i = 0; i < patterns.size(); i++) {
            machine.addRule(Integer.toString(i), patterns.get(i));
        }
        System.out.println(THREADS.getCurrentThreadCpuTime() - begin);
        try (PrintWriter out = new PrintWriter(files[2])) {
            for (String event : events) {
                out.println(String.join(" ", machine.rulesForJSONEvent(event)));
            }
        }
        Scanner asked = new Scanner(System.in);
        while (asked.hasNextLine()) {
            asked.nextLine();
            long found = 0;
            begin = THREADS.getCurrentThreadCpuTime();
            for (String event : events) {
                found += machine.rulesForJSONEvent(event).size();
            }
            System.out.println((THREADS.getCurrentThreadCpuTime() - begin) + " " + found);
        }
    }
}
