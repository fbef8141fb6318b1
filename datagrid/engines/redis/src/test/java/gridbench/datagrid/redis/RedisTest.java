package gridbench.datagrid.redis;

import gridbench.datagrid.engine.EngineContract;

final class RedisTest extends EngineContract {}
