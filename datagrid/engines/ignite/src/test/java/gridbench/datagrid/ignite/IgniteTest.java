package gridbench.datagrid.ignite;

import gridbench.datagrid.engine.EngineContract;

final class IgniteTest extends EngineContract {}
