package gridbench.datagrid.coherence;

import gridbench.datagrid.engine.EngineContract;

class CoherenceTest extends EngineContract {}
