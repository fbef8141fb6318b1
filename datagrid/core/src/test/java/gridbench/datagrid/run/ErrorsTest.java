package gridbench.datagrid.run;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.BindException;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import org.junit.jupiter.api.Test;

class ErrorsTest {
    @Test
    void textsAreOneLineWithCauses() {
        var failure = new IllegalStateException(
                "could not\n\tstart", new ExecutionException(new BindException("Address already in use")));
        assertEquals(
                "IllegalStateException: could not start, caused by BindException: Address already in use",
                Failure.text(failure));
        assertEquals("IOException", Failure.text(new IOException()));
    }

    @Test
    void portsThatAreTakenAreToldApart() {
        assertTrue(Failure.isPortTaken(new RuntimeException(new BindException("no"))));
        assertTrue(Failure.isPortTaken(new IOException("bind: Address already in use (98)")));
        assertFalse(Failure.isPortTaken(new IOException("port")));
    }

    @Test
    void causesThatAreCausedByEachOtherEnd() {
        var one = new IOException("one");
        var other = new IOException("other", one);
        one.initCause(other);
        assertTrue(Failure.text(one).startsWith("IOException: one, caused by IOException: other"));
        assertFalse(Failure.isPortTaken(one));
    }

    @Test
    void manyTextsAreCountedByTheirClass() {
        var errors = new Errors();
        for (var i = 0; i < 1000; i++) {
            errors.count(new IOException("request " + i));
            errors.count(new IOException("request 7"));
        }
        var sum = new TreeMap<String, Long>();
        errors.addTo(sum);
        assertTrue(sum.size() <= 51, sum.size() + " texts");
        assertEquals(2000, sum.values().stream().mapToLong(count -> count).sum());
        assertTrue(sum.get("IOException") > 900);
        assertTrue(sum.get("IOException: request 7") > 990);
    }
}
