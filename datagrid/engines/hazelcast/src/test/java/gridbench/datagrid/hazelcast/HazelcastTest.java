package gridbench.datagrid.hazelcast;

import gridbench.datagrid.engine.EngineContract;

final class HazelcastTest extends EngineContract {}
