package gridbench.datagrid.geode;

import gridbench.datagrid.engine.EngineContract;

class GeodeTest extends EngineContract {}
