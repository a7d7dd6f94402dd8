-- A store as version 0.1.0 has written it. Never changed: it stands for the files that users have.
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE devices (
  name TEXT NOT NULL PRIMARY KEY,
  fingerprint TEXT NOT NULL,
  settings TEXT NOT NULL,
  created INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO devices VALUES('ref','afcdba167e386ea863d3c68a89ee329ff5da5b59f79873763e1152890ba7f31d','{"cores":[0,1],"format":1,"hardware":{"architecture":"x86_64","cores":2,"cpu_model":"AMD EPYC","hypervisor":true,"instruction_sets":["avx","avx2","avx512_bf16","avx512_vnni","avx512bw","avx512cd","avx512dq","avx512f","avx512vl","avx_vnni","f16c","fma","sse4_1","sse4_2"],"max_frequency_khz":0},"limits":{"cpu_quota_percent":null,"frequency_khz":null,"memory_bytes":null},"name":"ref","precision":"int8","runtime":"reference","runtime_info":{"build":"AMD EPYC 26 2 1; onednn 2.6.3 isa 231; xnnpack of 950608 bytes isa avx512skx","name":"fleetfit","version":"0.1.0"},"threads":1}',1763585009857);
INSERT INTO devices VALUES('weak','e221cfe08fadfff2c0bdb92b97952928aa864e4275c68dd4e01dba77facf5328','{"cores":[],"format":1,"hardware":{"architecture":"x86_64","cores":2,"cpu_model":"AMD EPYC","hypervisor":true,"instruction_sets":["avx","avx2","avx512_bf16","avx512_vnni","avx512bw","avx512cd","avx512dq","avx512f","avx512vl","avx_vnni","f16c","fma","sse4_1","sse4_2"],"max_frequency_khz":0},"limits":{"cpu_quota_percent":50,"frequency_khz":null,"memory_bytes":null},"name":"weak","precision":"fp32","runtime":"auto","runtime_info":{"build":"AMD EPYC 26 2 1; onednn 2.6.3 isa 231; xnnpack of 950608 bytes isa avx512skx","name":"fleetfit","version":"0.1.0"},"threads":2}',1763585009758);
CREATE TABLE models (
  hash TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  source TEXT NOT NULL,
  bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO models VALUES('3e61edc5a52207cb81915efec3b465fb058799ac776e15c98be8e393089acb0f','lenet','uploaded as lenet.onnx',38704);
INSERT INTO models VALUES('a40bb586a9bacb32b2464cd92f93e73307c49e84f64c83a827178e1eea931c13','nasbench201-a40bb586a9ba','nasbench201:102143',0);
INSERT INTO models VALUES('ee8bd43d9dc9cfdde5b2a9f2205857f5c471ed32eec8a4c03fd33d380784069a','nasbench201-ee8bd43d9dc9','nasbench201:031344',0);
CREATE TABLE measurements (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  device TEXT NOT NULL,
  device_fingerprint TEXT NOT NULL,
  model_hash TEXT NOT NULL,
  model_name TEXT NOT NULL,
  space TEXT,
  design TEXT,
  status TEXT NOT NULL CHECK (status IN ('ok', 'unstable', 'failed')),
  reason TEXT NOT NULL,
  median_ms REAL,
  mean_ms REAL,
  p90_ms REAL,
  p99_ms REAL,
  ci95_low_ms REAL,
  ci95_high_ms REAL,
  runs INTEGER NOT NULL,
  overhead_ms REAL,
  peak_memory_bytes INTEGER,
  energy_mj REAL,
  energy_source TEXT CHECK (energy_source IN ('measured', 'modelled')),
  protocol TEXT NOT NULL,
  conditions TEXT NOT NULL,
  started INTEGER NOT NULL,
  CHECK ((energy_mj IS NULL) = (energy_source IS NULL))
) STRICT;
INSERT INTO measurements VALUES(1,'local','d6e6b576d1fa7e26f2dfd9e090b750fd27e4d4932d7a05372ec69945d38e8e4a','3e61edc5a52207cb81915efec3b465fb058799ac776e15c98be8e393089acb0f','lenet',NULL,NULL,'ok','',0.01123599999999999946,0.019281034329859746134,0.011346999999999999447,0.024304249999999999465,0.0106079320802224316,0.011901269621971863679,21876,0.0,35885056,NULL,NULL,'{"max_runs":100000,"max_time_s":1.0,"max_warmup_s":2.0,"mean_time_s":3.0,"min_runs":10,"min_time_s":0.5,"operators":true,"request_ms":50.0,"target":0.02}','{"bimodal":false,"drift":{"relative":0.0017814197915739793,"significant":false},"frequency_khz_after":null,"frequency_khz_before":null,"kernel":"6.18.44-fc-v657","load_after":2.26,"load_before":2.11,"notes":["operators and overhead add up to 0.0166 ms, +48 % from the median"],"outliers":1213,"session_ci95_ms":[0.011226999999999999,0.011246],"steal_share":0.0,"unlike_before":false,"warmup_runs":15203}',1763585009947);
INSERT INTO measurements VALUES(2,'ref','afcdba167e386ea863d3c68a89ee329ff5da5b59f79873763e1152890ba7f31d','3e61edc5a52207cb81915efec3b465fb058799ac776e15c98be8e393089acb0f','lenet',NULL,NULL,'unstable','after 626 runs in 0.835 s the runs fall into two groups, whose mean needs 3 s',0.40343699999999999006,0.69930958945686838568,0.46777800000000002711,4.5445644999999998958,0.38079098580710574184,0.42752686818495422294,626,0.0,29577216,NULL,NULL,'{"max_runs":100000,"max_time_s":1.0,"max_warmup_s":2.0,"mean_time_s":3.0,"min_runs":10,"min_time_s":0.5,"operators":true,"request_ms":50.0,"target":0.02}','{"bimodal":true,"drift":{"relative":0.007383254161798858,"significant":false},"frequency_khz_after":null,"frequency_khz_before":null,"kernel":"6.18.44-fc-v657","load_after":2.26,"load_before":2.11,"notes":["quantized after training with the ranges of random inputs: right for its speed, not for its accuracy","the runs fall into two groups, as if throttled: the mean tells what a run costs","operators and overhead add up to 0.5834 ms, +45 % from the median"],"outliers":52,"session_ci95_ms":[0.401258,0.406457],"steal_share":0.0,"unlike_before":false,"warmup_runs":449}',1763585009947);
INSERT INTO measurements VALUES(3,'local','d6e6b576d1fa7e26f2dfd9e090b750fd27e4d4932d7a05372ec69945d38e8e4a','ee8bd43d9dc9cfdde5b2a9f2205857f5c471ed32eec8a4c03fd33d380784069a','nasbench201-ee8bd43d9dc9','nasbench201','031344','unstable','after 143 runs in 0.229 s the 95 % interval of the median is ±2.1 %, the target ±2 %',0.70868799999999998462,0.83584042657342627613,0.76939219999999997057,3.0239726400000059847,0.66648226038732161224,0.75322276256056042154,143,0.0,54652928,NULL,NULL,'{"max_runs":100000,"max_time_s":0.3,"max_warmup_s":2.0,"mean_time_s":3.0,"min_runs":10,"min_time_s":0.15,"operators":true,"request_ms":50.0,"target":0.02}','{"bimodal":false,"drift":{"relative":0.024441160435019427,"significant":false},"frequency_khz_after":null,"frequency_khz_before":null,"kernel":"6.18.44-fc-v657","load_after":2.61,"load_before":2.61,"notes":["the warm-up was ended after 0.103 s, before it was steady"],"outliers":10,"session_ci95_ms":[0.693615,0.723119],"steal_share":0.0,"unlike_before":false,"warmup_runs":141}',1763585043154);
INSERT INTO measurements VALUES(4,'local','d6e6b576d1fa7e26f2dfd9e090b750fd27e4d4932d7a05372ec69945d38e8e4a','a40bb586a9bacb32b2464cd92f93e73307c49e84f64c83a827178e1eea931c13','nasbench201-a40bb586a9ba','nasbench201','102143','ok','',0.37664199999999997681,0.37854287169811312585,0.40089459999999998984,0.43078832000000000235,0.35519348759793301084,0.39912713428009727323,265,0.0,47247360,NULL,NULL,'{"max_runs":100000,"max_time_s":0.3,"max_warmup_s":2.0,"mean_time_s":3.0,"min_runs":10,"min_time_s":0.15,"operators":true,"request_ms":50.0,"target":0.02}','{"bimodal":false,"drift":{"relative":-0.010460226153473862,"significant":false},"frequency_khz_after":null,"frequency_khz_before":null,"kernel":"6.18.44-fc-v657","load_after":2.61,"load_before":2.61,"notes":["the warm-up was ended after 0.119 s, before it was steady"],"outliers":0,"session_ci95_ms":[0.372376,0.379426],"steal_share":0.0,"unlike_before":false,"warmup_runs":236}',1763585043626);
INSERT INTO measurements VALUES(5,'pi.two','efe3e73e9762e45e3a36a08af34a5ca150e3c6e31277c6d36810eee89d9a4b7b','3e61edc5a52207cb81915efec3b465fb058799ac776e15c98be8e393089acb0f','lenet',NULL,NULL,'unstable','after 7155 runs in 0.99 s the second half is 1.7e+03 % slower than the first',0.013960999999999999451,0.099957455625436980595,0.25076399999999998691,0.37457479999999998554,0.013167259151298779662,0.014859113038250002306,7155,0.0,26394624,NULL,NULL,'{"max_runs":100000,"max_time_s":0.5,"max_warmup_s":2.0,"mean_time_s":3.0,"min_runs":10,"min_time_s":0.25,"operators":true,"request_ms":50.0,"target":0.02}','{"bimodal":false,"drift":{"relative":16.859173313995647,"significant":true},"frequency_khz_after":null,"frequency_khz_before":null,"kernel":"6.18.44-fc-v657","load_after":2.47,"load_before":2.34,"notes":["the warm-up was ended after 0.156 s, before it was steady","operators and overhead add up to 0.1639 ms, +1074 % from the median"],"outliers":2157,"session_ci95_ms":[0.01381,0.014301],"steal_share":0.0,"unlike_before":false,"warmup_runs":4768,"job":2}',1763585080371);
INSERT INTO measurements VALUES(6,'pi','d6e6b576d1fa7e26f2dfd9e090b750fd27e4d4932d7a05372ec69945d38e8e4a','3e61edc5a52207cb81915efec3b465fb058799ac776e15c98be8e393089acb0f','lenet','none','x','ok','',0.01141799999999999933,0.012017884565794861861,0.011837999999999999564,0.023490500000000066882,0.010770942682374965923,0.012105179439982171121,26370,NULL,25346048,NULL,NULL,'{"max_runs":100000,"max_time_s":0.5,"max_warmup_s":2.0,"mean_time_s":3.0,"min_runs":10,"min_time_s":0.25,"operators":false,"request_ms":50.0,"target":0.05}','{"bimodal":false,"drift":{"relative":0.03473768593569093,"significant":true},"frequency_khz_after":null,"frequency_khz_before":null,"kernel":"6.18.44-fc-v657","load_after":2.47,"load_before":2.47,"notes":["the warm-up was ended after 0.138 s, before it was steady"],"outliers":872,"session_ci95_ms":[0.011307,0.011537],"steal_share":0.0,"unlike_before":false,"warmup_runs":7314,"job":3}',1763585081798);
CREATE TABLE operators (
  measurement INTEGER NOT NULL REFERENCES measurements (id) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  name TEXT NOT NULL,
  type TEXT NOT NULL,
  kernel TEXT NOT NULL,
  ms REAL NOT NULL,
  PRIMARY KEY (measurement, position)
) STRICT, WITHOUT ROWID;
INSERT INTO operators VALUES(1,0,'input_nhwc_transpose','Transpose','own copy',7.8716883700044899406e-05);
INSERT INTO operators VALUES(1,1,'Conv_0','Conv','onednn brgconv:avx512_core, activate',0.010508837146702558126);
INSERT INTO operators VALUES(1,2,'AveragePool_0','AveragePool','onednn jit:avx512_core',0.00069805854643337813657);
INSERT INTO operators VALUES(1,3,'Conv_1','Conv','xnnpack convolution f32 + own activate',0.0044023746074472857453);
INSERT INTO operators VALUES(1,4,'AveragePool_1','AveragePool','xnnpack average pooling f32',0.00021560139075818752401);
INSERT INTO operators VALUES(1,5,'AveragePool_1_transpose','Transpose','own copy',0.0001475414984297891436);
INSERT INTO operators VALUES(1,6,'Gemm_0','Gemm','xnnpack convolution f32 + own activate',0.0003943002699055330254);
INSERT INTO operators VALUES(1,7,'Gemm_1','Gemm','xnnpack convolution f32 + own activate',9.956466097889538026e-05);
INSERT INTO operators VALUES(1,8,'Gemm_2','Gemm','xnnpack convolution f32',5.484373596766950785e-05);
INSERT INTO operators VALUES(2,0,'input.quantize','Requantize','reference',0.0038083629032258066796);
INSERT INTO operators VALUES(2,1,'input.quantized_nhwc_transpose','Transpose','reference',0.001724456000000000079);
INSERT INTO operators VALUES(2,2,'Conv_0','Conv','reference',0.12431864000000000802);
INSERT INTO operators VALUES(2,3,'Conv_0.activation','Tanh','reference',0.19196443548387095989);
INSERT INTO operators VALUES(2,4,'AveragePool_0','AveragePool','reference',0.088469015999999997545);
INSERT INTO operators VALUES(2,5,'Conv_1','Conv','reference',0.11127203278688525822);
INSERT INTO operators VALUES(2,6,'Conv_1.activation','Tanh','reference',0.013980434426229508201);
INSERT INTO operators VALUES(2,7,'AveragePool_1','AveragePool','reference',0.0089798292682926831448);
INSERT INTO operators VALUES(2,8,'AveragePool_1.quantized_transpose','Transpose','reference',0.0010137440000000000166);
INSERT INTO operators VALUES(2,9,'Gemm_0','Gemm','reference',0.027999263999999999402);
INSERT INTO operators VALUES(2,10,'Gemm_0.activation','Tanh','reference',0.0012101519999999999291);
INSERT INTO operators VALUES(2,11,'Gemm_1','Gemm','reference',0.0046902960000000000484);
INSERT INTO operators VALUES(2,12,'Gemm_1.activation','Tanh','reference',0.0010114918032786885705);
INSERT INTO operators VALUES(2,13,'Gemm_2','Gemm','reference',0.0024414878048780487562);
INSERT INTO operators VALUES(2,14,'output.dequantize','Requantize','reference',0.00047533064516129032179);
INSERT INTO operators VALUES(3,0,'Conv_0','Conv','onednn jit:avx512_core',0.0048432650793650798559);
INSERT INTO operators VALUES(3,1,'reorder BatchNorm_0','Identity','onednn jit:blk',0.0037566166666666666977);
INSERT INTO operators VALUES(3,2,'Mul_0','Mul','xnnpack multiply f32',0.001112293452380952452);
INSERT INTO operators VALUES(3,3,'Relu_0','Relu','onednn jit:avx512_core',0.0010420876984126984689);
INSERT INTO operators VALUES(3,4,'Conv_1','Conv','onednn jit:avx512_core',0.019878699999999999148);
INSERT INTO operators VALUES(3,5,'reorder Mul_0','Identity','onednn jit:blk',0.0014277962301587300217);
INSERT INTO operators VALUES(3,6,'Add_0','Add','onednn jit:uni',0.0020650384920634918921);
INSERT INTO operators VALUES(3,7,'Relu_1','Relu','onednn jit:avx512_core',0.00092416527777777778863);
INSERT INTO operators VALUES(4,0,'Conv_0','Conv','onednn jit:avx512_core',0.0045943311284486658754);
INSERT INTO operators VALUES(4,1,'Relu_0','Relu','onednn jit:avx512_core',0.0013496783129805516206);
INSERT INTO operators VALUES(4,2,'Conv_1','Conv','onednn jit_1x1:avx512_core',0.0032416203640886474303);
INSERT INTO operators VALUES(4,3,'AveragePool_0','AveragePool','onednn jit:avx512_core',0.0023407447987336049352);
INSERT INTO operators VALUES(4,4,'Add_0','Add','onednn jit:uni',0.0018559080732700136175);
INSERT INTO operators VALUES(4,5,'Conv_2+Add_1','Conv','onednn jit:avx512_core',0.020268255653550427963);
INSERT INTO operators VALUES(4,6,'Relu_2','Relu','onednn jit:avx512_core',0.00098719866576209855738);
INSERT INTO operators VALUES(4,7,'Conv_3','Conv','onednn jit_1x1:avx512_core',0.0032421533808231570855);
INSERT INTO operators VALUES(5,0,'input_nhwc_transpose','Transpose','own copy',8.9067239901044701066e-05);
INSERT INTO operators VALUES(5,1,'Conv_0','Conv','onednn brgconv:avx512_core',0.15578755809117866837);
INSERT INTO operators VALUES(5,2,'AveragePool_0','AveragePool','onednn jit:avx512_core, one thread',0.0022532343416360391293);
INSERT INTO operators VALUES(5,3,'Conv_1','Conv','xnnpack convolution f32 + own activate, one thread',0.004810037749913988192);
INSERT INTO operators VALUES(5,4,'AveragePool_1','AveragePool','xnnpack average pooling f32, one thread',0.00022539299640112934281);
INSERT INTO operators VALUES(5,5,'AveragePool_1_transpose','Transpose','own copy',0.0001278643952095154441);
INSERT INTO operators VALUES(5,6,'Gemm_0','Gemm','xnnpack convolution f32 + own activate, one thread',0.00041321994888402239706);
INSERT INTO operators VALUES(5,7,'Gemm_1','Gemm','xnnpack convolution f32 + own activate, one thread',0.0001121284466422373089);
INSERT INTO operators VALUES(5,8,'Gemm_2','Gemm','xnnpack convolution f32, one thread',6.7340677614369267417e-05);
CREATE TABLE kernel_choices (
  cpu TEXT NOT NULL,
  key TEXT NOT NULL,
  choice TEXT NOT NULL,
  ms REAL,
  measured INTEGER NOT NULL,
  PRIMARY KEY (cpu, key)
) STRICT, WITHOUT ROWID;
INSERT INTO kernel_choices VALUES('AMD EPYC 26 2 1; onednn 2.6.3 isa 231; xnnpack of 950608 bytes isa avx512skx; kernels auto','Add  float32:1x16x16x32 float32:1x16x16x32 > float32:1x16x16x32 t1','xnnpack',NULL,1763585043555);
INSERT INTO kernel_choices VALUES('AMD EPYC 26 2 1; onednn 2.6.3 isa 231; xnnpack of 950608 bytes isa avx512skx; kernels auto','Add  float32:1x32x32x16 float32:1x32x32x16 > float32:1x32x32x16 t1','xnnpack',NULL,1763585043555);
INSERT INTO kernel_choices VALUES('AMD EPYC 26 2 1; onednn 2.6.3 isa 231; xnnpack of 950608 bytes isa avx512skx; kernels auto','Add  float32:1x8x8x64 float32:1x8x8x64 > float32:1x8x8x64 t1','xnnpack',NULL,1763585043555);
INSERT INTO kernel_choices VALUES('AMD EPYC 26 2 1; onednn 2.6.3 isa 231; xnnpack of 950608 bytes isa avx512skx; kernels auto','AveragePool k2x2s2x2d1x1p0x0-0x0a0 float32:1x10x10x8 > float32:1x5x5x8 t1','xnnpack',NULL,1763585012301);
INSERT INTO kernel_choices VALUES('AMD EPYC 26 2 1; onednn 2.6.3 isa 231; xnnpack of 950608 bytes isa avx512skx; kernels auto','AveragePool k2x2s2x2d1x1p0x0-0x0a0 float32:1x10x10x8 > float32:1x5x5x8 t2','xnnpack on one thread',NULL,1763585027364);
INSERT INTO kernel_choices VALUES('AMD EPYC 26 2 1; onednn 2.6.3 isa 231; xnnpack of 950608 bytes isa avx512skx; kernels auto','AveragePool k2x2s2x2d1x1p0x0-0x0a0 float32:1x16x16x32 > float32:1x8x8x32 t1','onednn',NULL,1763585043555);
INSERT INTO kernel_choices VALUES('AMD EPYC 26 2 1; onednn 2.6.3 isa 231; xnnpack of 950608 bytes isa avx512skx; kernels auto','AveragePool k2x2s2x2d1x1p0x0-0x0a0 float32:1x28x28x8 > float32:1x14x14x8 t1','onednn',NULL,1763585012301);
INSERT INTO kernel_choices VALUES('AMD EPYC 26 2 1; onednn 2.6.3 isa 231; xnnpack of 950608 bytes isa avx512skx; kernels auto','AveragePool k2x2s2x2d1x1p0x0-0x0a0 float32:1x28x28x8 > float32:1x14x14x8 t2','onednn on one thread',NULL,1763585027364);
CREATE TABLE studies (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  definition TEXT NOT NULL,
  seed INTEGER NOT NULL,
  created INTEGER NOT NULL
) STRICT;
INSERT INTO studies VALUES(1,'small',replace('name: small\nworkload: {command: [python3, /models/train.py], untrained: true}\nparameters:\n  training:\n    x: {range: [0, 1]}\n    rate: {range: [0.001, 1], log: true}\n    kind: {values: [adam, sgd]}\n  model: {layers: {values: [18, 34]}}\ninference:\n  devices: [local]\n  parameters: {batch_size: {values: [1, 4]}, threads: {values: [1, 2]}, precision: {values: [fp32]}}\n  scenario: {kind: server, samples: 4, period_ms: 50}\n  objective: latency\nobjective: {maximize: accuracy}\nconstraints: {}\nbudget: {kind: multi, min_epochs: 1, max_epochs: 4, min_data: 0.5, eta: 2, max_trials: 6}\nalgorithm: {model: bohb}\nseed: 11\n','\n',char(10)),11,1763585057344);
CREATE TABLE study_progress (
  study INTEGER NOT NULL PRIMARY KEY REFERENCES studies (id) ON DELETE CASCADE,
  done INTEGER NOT NULL CHECK (done IN (0, 1)),
  tuning_s REAL NOT NULL,
  tuning_j REAL,
  tuner TEXT NOT NULL,
  tuner_until INTEGER,
  change INTEGER NOT NULL,
  queued INTEGER NOT NULL,
  running INTEGER NOT NULL,
  paused INTEGER NOT NULL,
  finished INTEGER NOT NULL,
  stopped INTEGER NOT NULL,
  failed INTEGER NOT NULL
) STRICT;
INSERT INTO study_progress VALUES(1,1,2.1426524219999998344,3.9957050000000000622,'',NULL,6,0,0,0,2,3,1);
CREATE TABLE trials (
  study INTEGER NOT NULL REFERENCES studies (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  params TEXT NOT NULL,
  bracket INTEGER NOT NULL,
  level INTEGER NOT NULL,
  state TEXT NOT NULL
    CHECK (state IN ('queued', 'running', 'paused', 'finished', 'stopped', 'failed')),
  reason TEXT NOT NULL,
  structure TEXT NOT NULL,
  model_file TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  worker TEXT NOT NULL,
  lease_until INTEGER,
  stop_requested INTEGER NOT NULL CHECK (stop_requested IN (0, 1)),
  score REAL,
  change INTEGER NOT NULL, progress TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (study, number)
) STRICT, WITHOUT ROWID;
INSERT INTO trials VALUES(1,0,'{"kind":"adam","layers":18,"rate":0.006010992830660612,"x":0.5474387186487271}',0,2,'finished','','3da6b1f26fa8c6abb8072637e30ec8570b5a5ec833ed720ab4360a514133c75f','/models/lenet.onnx',3,'w1@host:8380',NULL,0,-0.88010100000000002218,1,'');
INSERT INTO trials VALUES(1,1,'{"kind":"adam","layers":34,"rate":0.0019550072875403925,"x":0.7215291457332283}',0,0,'stopped','not among the best 2 of 4 at level 0','3da6b1f26fa8c6abb8072637e30ec8570b5a5ec833ed720ab4360a514133c75f','/models/lenet.onnx',1,'w1@host:8380',NULL,0,-0.41115699999999999469,2,'');
INSERT INTO trials VALUES(1,2,'{"kind":"adam","layers":34,"rate":0.03904674356119379,"x":0.9894673658372944}',0,0,'failed','exit status 1: it does not go on','3da6b1f26fa8c6abb8072637e30ec8570b5a5ec833ed720ab4360a514133c75f','',1,'w1@host:8380',NULL,0,NULL,3,'');
INSERT INTO trials VALUES(1,3,'{"kind":"adam","layers":18,"rate":0.36709886483716503,"x":0.003153937700077325}',0,1,'stopped','not among the best 1 of 2 at level 1','3da6b1f26fa8c6abb8072637e30ec8570b5a5ec833ed720ab4360a514133c75f','/models/lenet.onnx',2,'w1@host:8380',NULL,0,-0.68391199999999996439,4,'');
INSERT INTO trials VALUES(1,4,'{"kind":"sgd","layers":34,"rate":0.06101127123072065,"x":0.6463921217449623}',1,1,'stopped','not among the best 1 of 2 at level 1','3da6b1f26fa8c6abb8072637e30ec8570b5a5ec833ed720ab4360a514133c75f','/models/lenet.onnx',1,'w1@host:8380',NULL,0,-0.66000899999999995682,5,'');
INSERT INTO trials VALUES(1,5,'{"kind":"adam","layers":34,"rate":0.0013692386491867636,"x":0.09382795306572689}',1,2,'finished','','3da6b1f26fa8c6abb8072637e30ec8570b5a5ec833ed720ab4360a514133c75f','/models/lenet.onnx',2,'w1@host:8380',NULL,0,-0.89764999999999994795,6,'');
CREATE TABLE levels (
  study INTEGER NOT NULL,
  trial INTEGER NOT NULL,
  level INTEGER NOT NULL,
  epochs INTEGER NOT NULL,
  data_fraction REAL NOT NULL,
  accuracy REAL NOT NULL,
  loss REAL,
  training_s REAL NOT NULL,
  training_j REAL,
  metrics TEXT NOT NULL,
  epoch_values TEXT NOT NULL,
  worker TEXT NOT NULL,
  started INTEGER NOT NULL,
  ended INTEGER NOT NULL,
  PRIMARY KEY (study, trial, level),
  FOREIGN KEY (study, trial) REFERENCES trials (study, number) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
INSERT INTO levels VALUES(1,0,0,1,0.5,0.46938699999999999867,0.5,0.15927591099999999224,0.42662499999999997646,'{"f1":0.25}','[0.1]','w1@host:8380',1763585057374,1763585057536);
INSERT INTO levels VALUES(1,0,1,2,1.0,0.70408099999999995688,0.5,0.19877244999999998942,0.45221499999999997809,'{"f1":0.25}','[0.1,0.2]','w1@host:8380',1763585058167,1763585058367);
INSERT INTO levels VALUES(1,0,2,4,1.0,0.88010100000000002218,0.5,0.18619552300000000166,0.44975500000000001588,'{"f1":0.25}','[0.1,0.2,0.30000000000000004,0.4]','w1@host:8380',1763585058596,1763585058787);
INSERT INTO levels VALUES(1,1,0,1,0.5,0.41115699999999999469,0.5,0.13423543399999998682,0.42604000000000002978,'{"f1":0.25}','[0.1]','w1@host:8380',1763585057571,1763585057709);
INSERT INTO levels VALUES(1,3,0,1,0.5,0.45594099999999998518,0.5,0.20054553699999999594,0.45462499999999994582,'{"f1":0.25}','[0.1]','w1@host:8380',1763585057955,1763585058161);
INSERT INTO levels VALUES(1,3,1,2,1.0,0.68391199999999996439,0.5,0.18464186399999998888,0.4490700000000000247,'{"f1":0.25}','[0.1,0.2]','w1@host:8380',1763585058373,1763585058561);
INSERT INTO levels VALUES(1,4,1,2,1.0,0.66000899999999995682,0.5,0.20182836000000001219,0.44691999999999998394,'{"f1":0.25}','[0.1,0.2]','w1@host:8380',1763585058802,1763585059010);
INSERT INTO levels VALUES(1,5,1,2,1.0,0.71811999999999998056,0.5,0.20137208000000000884,0.44739499999999993162,'{"f1":0.25}','[0.1,0.2]','w1@host:8380',1763585059026,1763585059234);
INSERT INTO levels VALUES(1,5,2,4,1.0,0.89764999999999994795,0.5,0.18330810399999999948,0.44306000000000000937,'{"f1":0.25}','[0.1,0.2,0.30000000000000004,0.4]','w1@host:8380',1763585059249,1763585059435);
CREATE TABLE inferences (
  structure TEXT NOT NULL,
  device_fingerprint TEXT NOT NULL,
  question TEXT NOT NULL,
  device TEXT NOT NULL,
  result TEXT NOT NULL,
  failed INTEGER NOT NULL CHECK (failed IN (0, 1)),
  elapsed_s REAL NOT NULL,
  study TEXT NOT NULL,
  found INTEGER NOT NULL,
  PRIMARY KEY (structure, device_fingerprint, question)
) STRICT, WITHOUT ROWID;
INSERT INTO inferences VALUES('3da6b1f26fa8c6abb8072637e30ec8570b5a5ec833ed720ab4360a514133c75f','d6e6b576d1fa7e26f2dfd9e090b750fd27e4d4932d7a05372ec69945d38e8e4a','v1 server:4@50ms latency grid batch_size=1,4 threads=1,2 precision=fp32','local','{"version":1,"best":1,"settings":4,"elapsed_s":18.739449002,"trials":[{"setting":{"batch_size":1,"threads":1,"precision":"fp32"},"cost":{"latency_ms":0.011257,"spread_ms":0.0006478840609858288,"source":"measured","runs_ms":{"mean":0.0186903843103073,"p90":0.011447,"p99":0.02612879999999996},"energy_mj":{"value":0.05906840684068407,"source":"modelled"}},"response":{"mean_ms":0.12356620959641895,"p95_ms":0.14423540833413423,"p99_ms":2.2108488427841397,"throughput":80.0,"busy":0.0038982674181231363,"run_ms":0.048728342726539205,"run_samples":1.0,"samples":20000,"saturated":false,"energy_mj":0.150345643490245}},{"setting":{"batch_size":4,"threads":1,"precision":"fp32"},"cost":{"latency_ms":0.119828,"spread_ms":0.008222846047656059,"source":"measured","runs_ms":{"mean":0.1104098082191781,"p90":0.13787039999999998,"p99":0.15941668000000003},"energy_mj":{"value":0.684931506849315,"source":"modelled"},"note":"unstable: after 73 runs in 3.02 s the 95 % interval of the median is ±3.7 %, the target ±2 %"},"response":{"mean_ms":0.11183979044586713,"p95_ms":0.15011199846449017,"p99_ms":0.15941667999140918,"throughput":80.0,"busy":0.0022367958089173426,"run_ms":0.11183979044586713,"run_samples":4.0,"samples":20000,"saturated":false,"energy_mj":0.17123287671233642}},{"setting":{"batch_size":1,"threads":2,"precision":"fp32"},"cost":{"latency_ms":0.01382,"spread_ms":0.0007955653041482238,"source":"measured","runs_ms":{"mean":0.030635492916616287,"p90":0.014301,"p99":0.03297299999999943},"energy_mj":{"value":0.14600844481275405,"source":"modelled"}},"response":{"mean_ms":0.18961682161809892,"p95_ms":0.16540742612723985,"p99_ms":4.739201148298133,"throughput":80.0,"busy":0.005943460629066679,"run_ms":0.07429325786333349,"run_samples":1.0,"samples":20000,"saturated":false,"energy_mj":0.34205902406938954}},{"setting":{"batch_size":4,"threads":2,"precision":"fp32"},"cost":{"latency_ms":0.122633,"spread_ms":0.0074828379671784545,"source":"measured","runs_ms":{"mean":0.12479697297297297,"p90":0.1374214,"p99":0.17238408000000002},"energy_mj":{"value":0.0,"source":"modelled"}},"response":{"mean_ms":0.12504716423277282,"p95_ms":0.15728557562761122,"p99_ms":0.17618798748342512,"throughput":80.0,"busy":0.0025009432846554566,"run_ms":0.12504716423277282,"run_samples":4.0,"samples":20000,"saturated":false,"energy_mj":0.0}}]}',0,18.739449002000000632,'small',1763585042740);
CREATE TABLE fleet_counters (
  what TEXT NOT NULL PRIMARY KEY,
  last INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO fleet_counters VALUES('audit',11);
INSERT INTO fleet_counters VALUES('events',21);
INSERT INTO fleet_counters VALUES('jobs',6);
INSERT INTO fleet_counters VALUES('tokens',3);
CREATE TABLE tokens (
  id INTEGER NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('admin', 'viewer', 'agent')),
  hash TEXT NOT NULL UNIQUE,
  device TEXT NOT NULL,
  created INTEGER NOT NULL,
  expires INTEGER,
  revoked INTEGER
) STRICT;
INSERT INTO tokens VALUES(1,'boss','admin','607fedf9895b01ac04e7ec07ac43987070961cbc1d905ff68bd25c3655851600','',1763585044078,NULL,NULL);
INSERT INTO tokens VALUES(2,'pi','agent','5763b99aca6d0bf4d3c7c51ab797c3e9b72b95198d7078188aeb5ec07b63851b','pi',1763585044126,NULL,NULL);
INSERT INTO tokens VALUES(3,'pi','agent','9045628ea8cf06763559fe9194c63658a381bace6acdaec5d0e253fe0648f461','pi',1763585079016,NULL,NULL);
CREATE TABLE agents (
  name TEXT NOT NULL PRIMARY KEY,
  version TEXT NOT NULL,
  hardware TEXT NOT NULL,
  search TEXT NOT NULL,
  serving TEXT NOT NULL,
  created INTEGER NOT NULL,
  last_seen INTEGER
) STRICT, WITHOUT ROWID;
INSERT INTO agents VALUES('pi','0.1.0','AMD EPYC, x86_64, 2 cores, 23.5 GiB',replace('pi\namd epyc, x86_64, 2 cores, 23.5 gib','\n',char(10)),'{}',1763585079016,1763585082756);
CREATE TABLE agent_probes (
  agent TEXT NOT NULL PRIMARY KEY REFERENCES agents (name) ON DELETE CASCADE,
  probe TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO agent_probes VALUES('pi','{"hardware":{"architecture":"x86_64","caches":[{"bytes":49152,"cores":[0],"level":1,"line_bytes":64,"type":"Data"},{"bytes":49152,"cores":[1],"level":1,"line_bytes":64,"type":"Data"},{"bytes":32768,"cores":[0],"level":1,"line_bytes":64,"type":"Instruction"},{"bytes":32768,"cores":[1],"level":1,"line_bytes":64,"type":"Instruction"},{"bytes":1048576,"cores":[0],"level":2,"line_bytes":64,"type":"Unified"},{"bytes":1048576,"cores":[1],"level":2,"line_bytes":64,"type":"Unified"},{"bytes":33554432,"cores":[0,1],"level":3,"line_bytes":64,"type":"Unified"}],"clusters":[{"capacity":1024,"cores":[0,1],"max_frequency_khz":null,"min_frequency_khz":null}],"cores":[0,1],"cpu_model":"AMD EPYC","hypervisor":true,"instruction_sets":["avx","avx2","avx512_bf16","avx512_vnni","avx512bw","avx512cd","avx512dq","avx512f","avx512vl","avx_vnni","f16c","fma","sse4_1","sse4_2"],"kernel":"6.18.44-fc-v657","memory_bytes":25276510208}}');
CREATE TABLE jobs (
  id INTEGER NOT NULL PRIMARY KEY,
  agent TEXT NOT NULL,
  kind TEXT NOT NULL,
  request TEXT NOT NULL,
  limits TEXT NOT NULL,
  key TEXT,
  state TEXT NOT NULL
    CHECK (state IN ('waiting', 'running', 'finished', 'failed', 'cancelled')),
  reason TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  most_attempts INTEGER NOT NULL,
  lease INTEGER,
  cancel_requested INTEGER NOT NULL CHECK (cancel_requested IN (0, 1)),
  result TEXT NOT NULL,
  created INTEGER NOT NULL,
  started INTEGER,
  ended INTEGER
) STRICT;
INSERT INTO jobs VALUES(1,'pi','probe','{"seconds":0.3}','{"seconds":600.0,"memory_bytes":0}','k0','finished','',1,3,NULL,0,'{"conditions":{"frequency_khz_after":null,"frequency_khz_before":null,"kernel":"6.18.44-fc-v657","load_after":2.34,"load_before":2.34,"steal_share":0.005235602094240838},"elapsed_s":0.949617382,"features":{"add_fp32_gb_per_s":107.60346269366622,"add_int8_gb_per_s":38.66390559034829,"concat_fp32_gb_per_s":73.90746215068128,"concat_int8_gb_per_s":85.63809823290254,"conv_fp32_gflop_per_s":462.7256350437647,"conv_int8_gop_per_s":1011.7961605855337,"cores":2.0,"depthwise_conv_fp32_gflop_per_s":120.92259368546075,"depthwise_conv_int8_gop_per_s":104.75777269822004,"fully_connected_fp32_gflop_per_s":32.19402202435104,"fully_connected_int8_gop_per_s":200.06192344023236,"global_average_pool_fp32_gb_per_s":116.82004316495924,"global_average_pool_int8_gb_per_s":46.45854051181031,"l1_bytes":49152.0,"l1_copy_gb_per_s":413.5563914832604,"l1_read_gb_per_s":549.8677698985795,"l2_bytes":1048576.0,"l2_copy_gb_per_s":273.28886120841554,"l2_read_gb_per_s":239.49542730324424,"l3_bytes":33554432.0,"l3_copy_gb_per_s":123.80133156480079,"l3_read_gb_per_s":114.43232226433531,"max_pool_fp32_gb_per_s":80.81881614560348,"max_pool_int8_gb_per_s":36.380529566411084,"memory_bytes":25276510208.0,"memory_copy_gb_per_s":44.7276432978381,"memory_read_gb_per_s":47.74010617391536,"peak_fp32_gflop_per_s":272.4960700913266,"peak_int8_gop_per_s":1070.1919971454686,"pointwise_conv_fp32_gflop_per_s":260.90205780762085,"pointwise_conv_int8_gop_per_s":913.0369016305947,"relu_fp32_gb_per_s":112.47160641655333,"sigmoid_fp32_gb_per_s":83.32381163268212,"sigmoid_int8_gb_per_s":122.11032470879769,"softmax_fp32_gb_per_s":14.539648512409464,"threads":1.0,"transpose_fp32_gb_per_s":14.586271111531566,"transpose_int8_gb_per_s":7.84385283370701},"hardware":{"architecture":"x86_64","caches":[{"bytes":49152,"cores":[0],"level":1,"line_bytes":64,"type":"Data"},{"bytes":49152,"cores":[1],"level":1,"line_bytes":64,"type":"Data"},{"bytes":32768,"cores":[0],"level":1,"line_bytes":64,"type":"Instruction"},{"bytes":32768,"cores":[1],"level":1,"line_bytes":64,"type":"Instruction"},{"bytes":1048576,"cores":[0],"level":2,"line_bytes":64,"type":"Unified"},{"bytes":1048576,"cores":[1],"level":2,"line_bytes":64,"type":"Unified"},{"bytes":33554432,"cores":[0,1],"level":3,"line_bytes":64,"type":"Unified"}],"clusters":[{"capacity":1024,"cores":[0,1],"max_frequency_khz":null,"min_frequency_khz":null}],"cores":[0,1],"cpu_model":"AMD EPYC","hypervisor":true,"instruction_sets":["avx","avx2","avx512_bf16","avx512_vnni","avx512bw","avx512cd","avx512dq","avx512f","avx512vl","avx_vnni","f16c","fma","sse4_1","sse4_2"],"kernel":"6.18.44-fc-v657","memory_bytes":25276510208},"kernels":"AMD EPYC 26 2 1; onednn 2.6.3 isa 231; xnnpack of 950608 bytes isa avx512skx","rates":[{"best":272.4960700913266,"median":268.4803232311901,"name":"peak_fp32_gflop_per_s","runs":8,"spread":0.05959851980099053,"subject":"peak of arithmetic, fp32","unit":"GFLOP/s","value":272.4960700913266},{"best":1070.1919971454686,"median":1045.7628935156458,"name":"peak_int8_gop_per_s","runs":8,"spread":0.0478283366729963,"subject":"peak of arithmetic, int8","unit":"GOP/s","value":1070.1919971454686},{"best":549.8677698985795,"median":542.4254220834248,"name":"l1_read_gb_per_s","runs":8,"spread":0.017035892991627093,"subject":"L1, read","unit":"GB/s","value":549.8677698985795},{"best":413.5563914832604,"median":370.076384673172,"name":"l1_copy_gb_per_s","runs":8,"spread":0.17858884380350917,"subject":"L1, copy","unit":"GB/s","value":413.5563914832604},{"best":239.49542730324424,"median":235.33734336642686,"name":"l2_read_gb_per_s","runs":8,"spread":0.05604052568114448,"subject":"L2, read","unit":"GB/s","value":239.49542730324424},{"best":273.28886120841554,"median":270.1724849336765,"name":"l2_copy_gb_per_s","runs":8,"spread":0.06529742440159872,"subject":"L2, copy","unit":"GB/s","value":273.28886120841554},{"best":114.43232226433531,"median":102.63370445348596,"name":"l3_read_gb_per_s","runs":8,"spread":0.1809542053517889,"subject":"L3, read","unit":"GB/s","value":114.43232226433531},{"best":123.80133156480079,"median":114.02470737195955,"name":"l3_copy_gb_per_s","runs":8,"spread":0.49278109615455246,"subject":"L3, copy","unit":"GB/s","value":123.80133156480079},{"best":47.74010617391536,"median":43.24376961885613,"name":"memory_read_gb_per_s","runs":8,"spread":0.12898262241794417,"subject":"memory, read","unit":"GB/s","value":47.74010617391536},{"best":44.7276432978381,"median":41.999520369907984,"name":"memory_copy_gb_per_s","runs":8,"spread":0.2697343128334401,"subject":"memory, copy","unit":"GB/s","value":44.7276432978381},{"best":500.99513438142935,"median":462.7256350437647,"name":"conv_fp32_gflop_per_s","runs":8,"spread":0.11503367767151312,"subject":"dense 3x3 convolution, fp32","unit":"GFLOP/s","value":462.7256350437647},{"best":1044.4290718710968,"median":1011.7961605855337,"name":"conv_int8_gop_per_s","runs":8,"spread":0.12139266320386342,"subject":"dense 3x3 convolution, int8","unit":"GOP/s","value":1011.7961605855337},{"best":275.0488426372026,"median":260.90205780762085,"name":"pointwise_conv_fp32_gflop_per_s","runs":8,"spread":0.06811771435442489,"subject":"1x1 convolution, fp32","unit":"GFLOP/s","value":260.90205780762085},{"best":952.8001409351791,"median":913.0369016305947,"name":"pointwise_conv_int8_gop_per_s","runs":8,"spread":0.1276853091606588,"subject":"1x1 convolution, int8","unit":"GOP/s","value":913.0369016305947},{"best":128.21350747063207,"median":120.92259368546075,"name":"depthwise_conv_fp32_gflop_per_s","runs":8,"spread":0.16111535433727434,"subject":"depthwise 3x3 convolution, fp32","unit":"GFLOP/s","value":120.92259368546075},{"best":107.55200952664485,"median":104.75777269822004,"name":"depthwise_conv_int8_gop_per_s","runs":8,"spread":0.04454963204870291,"subject":"depthwise 3x3 convolution, int8","unit":"GOP/s","value":104.75777269822004},{"best":40.18522878894907,"median":32.19402202435104,"name":"fully_connected_fp32_gflop_per_s","runs":8,"spread":0.28330288951652727,"subject":"fully connected layer, fp32","unit":"GFLOP/s","value":32.19402202435104},{"best":237.12486105965172,"median":200.06192344023236,"name":"fully_connected_int8_gop_per_s","runs":8,"spread":0.2640155444024175,"subject":"fully connected layer, int8","unit":"GOP/s","value":200.06192344023236},{"best":84.48560363697592,"median":80.81881614560348,"name":"max_pool_fp32_gb_per_s","runs":8,"spread":0.16405925831156193,"subject":"3x3 max pooling, fp32","unit":"GB/s","value":80.81881614560348},{"best":36.57142857142858,"median":36.380529566411084,"name":"max_pool_int8_gb_per_s","runs":8,"spread":0.03574031541251078,"subject":"3x3 max pooling, int8","unit":"GB/s","value":36.380529566411084},{"best":145.5367886915549,"median":116.82004316495924,"name":"global_average_pool_fp32_gb_per_s","runs":8,"spread":0.4005459853067335,"subject":"global average pooling, fp32","unit":"GB/s","value":116.82004316495924},{"best":47.733713742272954,"median":46.45854051181031,"name":"global_average_pool_int8_gb_per_s","runs":8,"spread":0.08209957860484776,"subject":"global average pooling, int8","unit":"GB/s","value":46.45854051181031},{"best":129.09085061907058,"median":107.60346269366622,"name":"add_fp32_gb_per_s","runs":8,"spread":0.2819460360331826,"subject":"sum of two tensors, fp32","unit":"GB/s","value":107.60346269366622},{"best":39.21787272845698,"median":38.66390559034829,"name":"add_int8_gb_per_s","runs":8,"spread":0.04443979479061029,"subject":"sum of two tensors, int8","unit":"GB/s","value":38.66390559034829},{"best":132.0638262872183,"median":112.47160641655333,"name":"relu_fp32_gb_per_s","runs":8,"spread":0.2653860517844746,"subject":"ReLU, fp32","unit":"GB/s","value":112.47160641655333},{"best":91.87640192263676,"median":83.32381163268212,"name":"sigmoid_fp32_gb_per_s","runs":8,"spread":0.1961343241945247,"subject":"sigmoid, fp32","unit":"GB/s","value":83.32381163268212},{"best":130.1160453808752,"median":122.11032470879769,"name":"sigmoid_int8_gb_per_s","runs":8,"spread":0.15707951210283588,"subject":"sigmoid, int8","unit":"GB/s","value":122.11032470879769},{"best":76.61737408441294,"median":73.90746215068128,"name":"concat_fp32_gb_per_s","runs":8,"spread":0.0732226403022581,"subject":"concatenation of two tensors, fp32","unit":"GB/s","value":73.90746215068128},{"best":106.74325222709747,"median":85.63809823290254,"name":"concat_int8_gb_per_s","runs":8,"spread":0.24432725031184035,"subject":"concatenation of two tensors, int8","unit":"GB/s","value":85.63809823290254},{"best":24.192499510313553,"median":14.586271111531566,"name":"transpose_fp32_gb_per_s","runs":8,"spread":0.8408509363369476,"subject":"transposition NCHW to NHWC, fp32","unit":"GB/s","value":14.586271111531566},{"best":7.914975845410627,"median":7.84385283370701,"name":"transpose_int8_gb_per_s","runs":8,"spread":0.05962640420156394,"subject":"transposition NCHW to NHWC, int8","unit":"GB/s","value":7.84385283370701},{"best":14.79753431621759,"median":14.539648512409464,"name":"softmax_fp32_gb_per_s","runs":8,"spread":0.04505132086946304,"subject":"softmax, fp32","unit":"GB/s","value":14.539648512409464}],"threads":1}',1763585079040,1763585079065,1763585080300);
INSERT INTO jobs VALUES(2,'pi','measure','{"model":"3e61edc5a52207cb81915efec3b465fb058799ac776e15c98be8e393089acb0f","name":"lenet.onnx","settings":{"runtime":"auto","threads":2,"precision":"fp32"},"as":"two","ops":true,"max_time_s":0.5,"target_ci":2.0}','{"seconds":600.0,"memory_bytes":0}','k1','finished','',1,3,NULL,0,'{"bimodal":false,"conditions":{"frequency_khz_after":null,"frequency_khz_before":null,"kernel":"6.18.44-fc-v657","load_after":2.47,"load_before":2.34,"steal_share":0.0},"device":"settings","device_fingerprint":"efe3e73e9762e45e3a36a08af34a5ca150e3c6e31277c6d36810eee89d9a4b7b","drift":{"relative":16.859173313995647,"significant":true},"energy_meter":"no energy: this machine has no RAPL (no intel-rapl zone in sys/class/powercap); this machine has no hwmon sensor of power or energy; this machine has no battery that tells its power; no power table was given","energy_mj":null,"hash":"3e61edc5a52207cb81915efec3b465fb058799ac776e15c98be8e393089acb0f","latency_ms":{"ci95":[0.01316725915129878,0.014859113038250002],"mean":0.09995745562543698,"mean_ci95":[0.05382520709830639,0.14608970415256756],"median":0.013961,"p90":0.250764,"p99":0.3745748,"session_ci95":[0.01381,0.014301]},"model":"lenet.onnx","notes":["the warm-up was ended after 0.156 s, before it was steady","operators and overhead add up to 0.1639 ms, +1074 % from the median"],"ops":[{"kernel":"own copy","latency_ms":8.90672399010447e-05,"name":"input_nhwc_transpose","type":"Transpose"},{"kernel":"onednn brgconv:avx512_core","latency_ms":0.15578755809117867,"name":"Conv_0","type":"Conv"},{"kernel":"onednn jit:avx512_core, one thread","latency_ms":0.002253234341636039,"name":"AveragePool_0","type":"AveragePool"},{"kernel":"xnnpack convolution f32 + own activate, one thread","latency_ms":0.004810037749913988,"name":"Conv_1","type":"Conv"},{"kernel":"xnnpack average pooling f32, one thread","latency_ms":0.00022539299640112934,"name":"AveragePool_1","type":"AveragePool"},{"kernel":"own copy","latency_ms":0.00012786439520951544,"name":"AveragePool_1_transpose","type":"Transpose"},{"kernel":"xnnpack convolution f32 + own activate, one thread","latency_ms":0.0004132199488840224,"name":"Gemm_0","type":"Gemm"},{"kernel":"xnnpack convolution f32 + own activate, one thread","latency_ms":0.00011212844664223731,"name":"Gemm_1","type":"Gemm"},{"kernel":"xnnpack convolution f32, one thread","latency_ms":6.734067761436927e-05,"name":"Gemm_2","type":"Gemm"}],"outliers":2157,"overhead_ms":0.0,"peak_memory_bytes":26394624,"protocol":{"max_runs":100000,"max_time_s":0.5,"max_warmup_s":2.0,"mean_time_s":3.0,"min_runs":10,"min_time_s":0.25,"operators":true,"request_ms":50.0,"target":0.02},"reason":"after 7155 runs in 0.99 s the second half is 1.7e+03 % slower than the first","runs":7155,"started":"2026-11-19T20:44:40.371Z","status":"unstable","unlike_before":false,"warmup_runs":4768}',1763585079041,1763585080304,1763585081764);
INSERT INTO jobs VALUES(3,'pi','measure','{"model":"3e61edc5a52207cb81915efec3b465fb058799ac776e15c98be8e393089acb0f","name":"lenet.onnx","settings":{"runtime":"auto","threads":1,"precision":"fp32"},"space":"none","design":"x","ops":false,"max_time_s":0.5,"target_ci":5.0}','{"seconds":600.0,"memory_bytes":0}','k2','finished','',1,3,NULL,0,'{"bimodal":false,"conditions":{"frequency_khz_after":null,"frequency_khz_before":null,"kernel":"6.18.44-fc-v657","load_after":2.47,"load_before":2.47,"steal_share":0.0},"design":"x","device":"local","device_fingerprint":"d6e6b576d1fa7e26f2dfd9e090b750fd27e4d4932d7a05372ec69945d38e8e4a","drift":{"relative":0.03473768593569093,"significant":true},"energy_meter":"no energy: this machine has no RAPL (no intel-rapl zone in sys/class/powercap); this machine has no hwmon sensor of power or energy; this machine has no battery that tells its power; no power table was given","energy_mj":null,"hash":"3e61edc5a52207cb81915efec3b465fb058799ac776e15c98be8e393089acb0f","latency_ms":{"ci95":[0.010770942682374966,0.012105179439982171],"mean":0.012017884565794862,"mean_ci95":[0.011692447008938109,0.012343322122651615],"median":0.011418,"p90":0.011838,"p99":0.023490500000000067,"session_ci95":[0.011307,0.011537]},"model":"lenet.onnx","notes":["the warm-up was ended after 0.138 s, before it was steady"],"outliers":872,"overhead_ms":null,"peak_memory_bytes":25346048,"protocol":{"max_runs":100000,"max_time_s":0.5,"max_warmup_s":2.0,"mean_time_s":3.0,"min_runs":10,"min_time_s":0.25,"operators":false,"request_ms":50.0,"target":0.05},"reason":"","runs":26370,"space":"none","started":"2026-11-19T20:44:41.798Z","status":"ok","unlike_before":false,"warmup_runs":7314}',1763585079043,1763585081772,1763585082516);
INSERT INTO jobs VALUES(4,'pi','adapt','{"bundle":"3e61edc5a52207cb81915efec3b465fb058799ac776e15c98be8e393089acb0f","data":"mnist","budget_ms":5.0,"strategy":"guided"}','{"seconds":600.0,"memory_bytes":0}','k3','failed','/tmp/rec/g/state/files/3e61edc5a52207cb81915efec3b465fb058799ac776e15c98be8e393089acb0f: it is no bundle of fleetfit',1,3,NULL,0,'{}',1763585079044,1763585082520,1763585082756);
INSERT INTO jobs VALUES(5,'pi','deploy','{"bundle":"3e61edc5a52207cb81915efec3b465fb058799ac776e15c98be8e393089acb0f"}','{"seconds":30.0,"memory_bytes":1000000}',NULL,'waiting','',0,3,NULL,0,'{}',1763585083152,NULL,NULL);
INSERT INTO jobs VALUES(6,'pi','run','{"bundle":"3e61edc5a52207cb81915efec3b465fb058799ac776e15c98be8e393089acb0f","budget_ms":3.0,"data":"d","seconds":5.0}','{"seconds":600.0,"memory_bytes":0}',NULL,'waiting','',0,3,NULL,0,'{}',1763585083154,NULL,NULL);
CREATE TABLE job_counts (
  agent TEXT NOT NULL PRIMARY KEY,
  waiting INTEGER NOT NULL,
  running INTEGER NOT NULL,
  finished INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  cancelled INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO job_counts VALUES('',2,0,3,1,0);
INSERT INTO job_counts VALUES('pi',2,0,3,1,0);
CREATE TABLE events (
  id INTEGER NOT NULL PRIMARY KEY,
  agent TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  job INTEGER,
  kind TEXT NOT NULL,
  body TEXT NOT NULL,
  time INTEGER NOT NULL
) STRICT;
INSERT INTO events VALUES(1,'pi',0,NULL,'device','{"state":"added"}',1763585079016);
INSERT INTO events VALUES(2,'pi',0,1,'job','{"kind":"probe","state":"waiting","reason":"","attempt":0}',1763585079040);
INSERT INTO events VALUES(3,'pi',0,2,'job','{"kind":"measure","state":"waiting","reason":"","attempt":0}',1763585079041);
INSERT INTO events VALUES(4,'pi',0,3,'job','{"kind":"measure","state":"waiting","reason":"","attempt":0}',1763585079043);
INSERT INTO events VALUES(5,'pi',0,4,'job','{"kind":"adapt","state":"waiting","reason":"","attempt":0}',1763585079044);
INSERT INTO events VALUES(6,'pi',0,NULL,'device','{"state":"online"}',1763585079064);
INSERT INTO events VALUES(7,'pi',0,1,'job','{"kind":"probe","state":"running","reason":"","attempt":1}',1763585079065);
INSERT INTO events VALUES(8,'pi',1763585079055,1,'progress','{"done":1,"name":"probe","total":160,"unit":"steps"}',1763585079191);
INSERT INTO events VALUES(9,'pi',0,1,'job','{"kind":"probe","state":"finished","reason":"","attempt":1}',1763585080300);
INSERT INTO events VALUES(10,'pi',0,2,'job','{"kind":"measure","state":"running","reason":"","attempt":1}',1763585080304);
INSERT INTO events VALUES(11,'pi',1763585079056,2,'progress','{"done":1,"name":"measure","total":1,"unit":"models"}',1763585081639);
INSERT INTO events VALUES(12,'pi',0,2,'job','{"kind":"measure","state":"finished","reason":"","attempt":1}',1763585081764);
INSERT INTO events VALUES(13,'pi',0,2,'measurement','{"id":5,"model":"3e61edc5a52207cb81915efec3b465fb058799ac776e15c98be8e393089acb0f","name":"lenet","device":"pi.two","status":"unstable","median_ms":0.013961}',1763585081764);
INSERT INTO events VALUES(14,'pi',0,3,'job','{"kind":"measure","state":"running","reason":"","attempt":1}',1763585081772);
INSERT INTO events VALUES(15,'pi',0,3,'job','{"kind":"measure","state":"finished","reason":"","attempt":1}',1763585082516);
INSERT INTO events VALUES(16,'pi',0,3,'measurement','{"id":6,"model":"3e61edc5a52207cb81915efec3b465fb058799ac776e15c98be8e393089acb0f","name":"lenet","device":"pi","status":"ok","median_ms":0.011418}',1763585082516);
INSERT INTO events VALUES(17,'pi',0,4,'job','{"kind":"adapt","state":"running","reason":"","attempt":1}',1763585082520);
INSERT INTO events VALUES(18,'pi',1763585079057,3,'progress','{"done":1,"name":"measure","total":1,"unit":"models"}',1763585082396);
INSERT INTO events VALUES(19,'pi',0,4,'job','{"kind":"adapt","state":"failed","reason":"/tmp/rec/g/state/files/3e61edc5a52207cb81915efec3b465fb058799ac776e15c98be8e393089acb0f: it is no bundle of fleetfit","attempt":1}',1763585082756);
INSERT INTO events VALUES(20,'pi',0,5,'job','{"kind":"deploy","state":"waiting","reason":"","attempt":0}',1763585083152);
INSERT INTO events VALUES(21,'pi',0,6,'job','{"kind":"run","state":"waiting","reason":"","attempt":0}',1763585083154);
CREATE TABLE event_sequences (
  agent TEXT NOT NULL PRIMARY KEY,
  sequence INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO event_sequences VALUES('pi',1763585079057);
CREATE TABLE files (
  hash TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  kind TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  created INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO files VALUES('3e61edc5a52207cb81915efec3b465fb058799ac776e15c98be8e393089acb0f','lenet.onnx','onnx',38704,1763585079031);
CREATE TABLE audit (
  id INTEGER NOT NULL PRIMARY KEY,
  token INTEGER NOT NULL,
  name TEXT NOT NULL,
  action TEXT NOT NULL,
  detail TEXT NOT NULL,
  time INTEGER NOT NULL
) STRICT;
INSERT INTO audit VALUES(1,0,'command line','token.create','1 admin boss',1763585044091);
INSERT INTO audit VALUES(2,0,'command line','token.create','2 agent pi',1763585044143);
INSERT INTO audit VALUES(3,1,'boss','device.add','pi',1763585079016);
INSERT INTO audit VALUES(4,1,'boss','file.add','3e61edc5a52207cb81915efec3b465fb058799ac776e15c98be8e393089acb0f lenet.onnx',1763585079031);
INSERT INTO audit VALUES(5,1,'boss','job.create','1 probe on pi',1763585079040);
INSERT INTO audit VALUES(6,1,'boss','job.create','2 measure on pi',1763585079041);
INSERT INTO audit VALUES(7,1,'boss','job.create','3 measure on pi',1763585079043);
INSERT INTO audit VALUES(8,1,'boss','job.create','4 adapt on pi',1763585079044);
INSERT INTO audit VALUES(9,3,'pi','agent.register','pi',1763585079064);
INSERT INTO audit VALUES(10,1,'boss','job.create','5 deploy on pi',1763585083152);
INSERT INTO audit VALUES(11,1,'boss','job.create','6 run on pi',1763585083154);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('measurements',6);
INSERT INTO sqlite_sequence VALUES('studies',1);
CREATE INDEX measurements_by_device ON measurements (device, started);
CREATE INDEX measurements_by_model ON measurements (model_hash, started);
CREATE INDEX measurements_by_space ON measurements (space, started) WHERE space IS NOT NULL;
CREATE INDEX trials_by_change ON trials (study, change);
CREATE INDEX trials_by_lease ON trials (study, lease_until, number) WHERE lease_until IS NOT NULL;
CREATE INDEX trials_in_queue ON trials (study, number) WHERE state = 'queued';
CREATE INDEX inferences_by_study ON inferences (study, found);
CREATE INDEX trials_by_score ON trials (study, (state <> 'finished'), score, number)
  WHERE score IS NOT NULL;
CREATE INDEX agents_by_last_seen ON agents (last_seen, name);
CREATE INDEX jobs_by_agent ON jobs (agent, id);
CREATE INDEX jobs_by_agent_and_state ON jobs (agent, state, id);
CREATE INDEX jobs_by_state ON jobs (state, id);
CREATE INDEX jobs_by_lease ON jobs (lease, id) WHERE lease IS NOT NULL;
CREATE UNIQUE INDEX jobs_by_key ON jobs (key) WHERE key IS NOT NULL;
CREATE INDEX events_by_agent ON events (agent, id);
CREATE INDEX events_by_agent_and_kind ON events (agent, kind, id);
CREATE INDEX events_by_kind ON events (kind, id);
CREATE INDEX events_by_job ON events (job, id) WHERE job IS NOT NULL;
CREATE INDEX events_by_time ON events (time);
CREATE INDEX files_by_created ON files (created, hash);
COMMIT;
