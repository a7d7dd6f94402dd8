-- Made by optuna3.py with Optuna 3.1.0.
BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('v3.0.0.d');
CREATE TABLE studies (
	study_id INTEGER NOT NULL, 
	study_name VARCHAR(512) NOT NULL, 
	PRIMARY KEY (study_id)
);
INSERT INTO "studies" VALUES(1,'mixed');
INSERT INTO "studies" VALUES(2,'pareto');
CREATE TABLE study_directions (
	study_direction_id INTEGER NOT NULL, 
	direction VARCHAR(8) NOT NULL, 
	study_id INTEGER NOT NULL, 
	objective INTEGER NOT NULL, 
	PRIMARY KEY (study_direction_id), 
	UNIQUE (study_id, objective), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
INSERT INTO "study_directions" VALUES(1,'MAXIMIZE',1,0);
INSERT INTO "study_directions" VALUES(2,'MAXIMIZE',2,0);
INSERT INTO "study_directions" VALUES(3,'MINIMIZE',2,1);
CREATE TABLE study_system_attributes (
	study_system_attribute_id INTEGER NOT NULL, 
	study_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (study_system_attribute_id), 
	UNIQUE (study_id, "key"), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
CREATE TABLE study_user_attributes (
	study_user_attribute_id INTEGER NOT NULL, 
	study_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (study_user_attribute_id), 
	UNIQUE (study_id, "key"), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
CREATE TABLE trial_heartbeats (
	trial_heartbeat_id INTEGER NOT NULL, 
	trial_id INTEGER NOT NULL, 
	heartbeat DATETIME NOT NULL, 
	PRIMARY KEY (trial_heartbeat_id), 
	UNIQUE (trial_id), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
CREATE TABLE trial_intermediate_values (
	trial_intermediate_value_id INTEGER NOT NULL, 
	trial_id INTEGER NOT NULL, 
	step INTEGER NOT NULL, 
	intermediate_value FLOAT, 
	intermediate_value_type VARCHAR(7) NOT NULL, 
	PRIMARY KEY (trial_intermediate_value_id), 
	UNIQUE (trial_id, step), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_intermediate_values" VALUES(1,1,0,0.0,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(2,1,1,0.25,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(3,1,2,0.5,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(4,2,0,0.0,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(5,2,1,0.25,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(6,2,2,0.5,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(7,3,0,0.0,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(8,3,1,0.25,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(9,3,2,0.5,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(10,4,0,0.0,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(11,4,1,0.25,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(12,5,0,0.0,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(13,5,1,0.25,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(14,5,2,0.5,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(15,6,0,0.0,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(16,6,1,0.25,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(17,6,2,0.5,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(18,7,0,0.0,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(19,7,1,0.25,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(20,7,2,0.5,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(21,8,0,0.0,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(22,8,1,0.25,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(23,8,2,0.5,'FINITE');
CREATE TABLE trial_params (
	param_id INTEGER NOT NULL, 
	trial_id INTEGER, 
	param_name VARCHAR(512), 
	param_value FLOAT, 
	distribution_json TEXT, 
	PRIMARY KEY (param_id), 
	UNIQUE (trial_id, param_name), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_params" VALUES(1,1,'learning_rate',7.38107054353044356176e-02,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 1e-05, "high": 0.1, "log": true}}');
INSERT INTO "trial_params" VALUES(2,1,'layers',5.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 1, "high": 8}}');
INSERT INTO "trial_params" VALUES(3,1,'optimizer',4.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, true]}}');
INSERT INTO "trial_params" VALUES(4,1,'dropout',0.0,'{"name": "FloatDistribution", "attributes": {"step": 0.1, "low": 0.0, "high": 0.5, "log": false}}');
INSERT INTO "trial_params" VALUES(5,1,'width',32.0,'{"name": "IntDistribution", "attributes": {"log": true, "step": 1, "low": 16, "high": 256}}');
INSERT INTO "trial_params" VALUES(6,1,'batch',32.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 8, "low": 8, "high": 64}}');
INSERT INTO "trial_params" VALUES(7,2,'learning_rate',1.31078567696808912651e-02,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 1e-05, "high": 0.1, "log": true}}');
INSERT INTO "trial_params" VALUES(8,2,'layers',2.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 1, "high": 8}}');
INSERT INTO "trial_params" VALUES(9,2,'optimizer',1.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, true]}}');
INSERT INTO "trial_params" VALUES(10,2,'dropout',0.2,'{"name": "FloatDistribution", "attributes": {"step": 0.1, "low": 0.0, "high": 0.5, "log": false}}');
INSERT INTO "trial_params" VALUES(11,2,'width',18.0,'{"name": "IntDistribution", "attributes": {"log": true, "step": 1, "low": 16, "high": 256}}');
INSERT INTO "trial_params" VALUES(12,2,'batch',64.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 8, "low": 8, "high": 64}}');
INSERT INTO "trial_params" VALUES(13,2,'momentum',7.13711856971100844226e-01,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 0.5, "high": 0.99, "log": false}}');
INSERT INTO "trial_params" VALUES(14,3,'learning_rate',6.25042037669299721525e-02,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 1e-05, "high": 0.1, "log": true}}');
INSERT INTO "trial_params" VALUES(15,3,'layers',7.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 1, "high": 8}}');
INSERT INTO "trial_params" VALUES(16,3,'optimizer',0.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, true]}}');
INSERT INTO "trial_params" VALUES(17,3,'dropout',0.4,'{"name": "FloatDistribution", "attributes": {"step": 0.1, "low": 0.0, "high": 0.5, "log": false}}');
INSERT INTO "trial_params" VALUES(18,3,'width',49.0,'{"name": "IntDistribution", "attributes": {"log": true, "step": 1, "low": 16, "high": 256}}');
INSERT INTO "trial_params" VALUES(19,3,'batch',40.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 8, "low": 8, "high": 64}}');
INSERT INTO "trial_params" VALUES(20,4,'learning_rate',5.62712206135109194171e-02,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 1e-05, "high": 0.1, "log": true}}');
INSERT INTO "trial_params" VALUES(21,4,'layers',5.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 1, "high": 8}}');
INSERT INTO "trial_params" VALUES(22,4,'optimizer',4.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, true]}}');
INSERT INTO "trial_params" VALUES(23,4,'dropout',0.2,'{"name": "FloatDistribution", "attributes": {"step": 0.1, "low": 0.0, "high": 0.5, "log": false}}');
INSERT INTO "trial_params" VALUES(24,4,'width',96.0,'{"name": "IntDistribution", "attributes": {"log": true, "step": 1, "low": 16, "high": 256}}');
INSERT INTO "trial_params" VALUES(25,4,'batch',32.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 8, "low": 8, "high": 64}}');
INSERT INTO "trial_params" VALUES(26,5,'learning_rate',3.13086581136951935117e-03,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 1e-05, "high": 0.1, "log": true}}');
INSERT INTO "trial_params" VALUES(27,5,'layers',7.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 1, "high": 8}}');
INSERT INTO "trial_params" VALUES(28,5,'optimizer',3.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, true]}}');
INSERT INTO "trial_params" VALUES(29,5,'dropout',3.00000000000000044408e-01,'{"name": "FloatDistribution", "attributes": {"step": 0.1, "low": 0.0, "high": 0.5, "log": false}}');
INSERT INTO "trial_params" VALUES(30,5,'width',90.0,'{"name": "IntDistribution", "attributes": {"log": true, "step": 1, "low": 16, "high": 256}}');
INSERT INTO "trial_params" VALUES(31,5,'batch',64.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 8, "low": 8, "high": 64}}');
INSERT INTO "trial_params" VALUES(32,6,'learning_rate',2.82757643587891167955e-04,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 1e-05, "high": 0.1, "log": true}}');
INSERT INTO "trial_params" VALUES(33,6,'layers',6.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 1, "high": 8}}');
INSERT INTO "trial_params" VALUES(34,6,'optimizer',3.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, true]}}');
INSERT INTO "trial_params" VALUES(35,6,'dropout',0.4,'{"name": "FloatDistribution", "attributes": {"step": 0.1, "low": 0.0, "high": 0.5, "log": false}}');
INSERT INTO "trial_params" VALUES(36,6,'width',50.0,'{"name": "IntDistribution", "attributes": {"log": true, "step": 1, "low": 16, "high": 256}}');
INSERT INTO "trial_params" VALUES(37,6,'batch',64.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 8, "low": 8, "high": 64}}');
INSERT INTO "trial_params" VALUES(38,7,'learning_rate',4.16198843642839129332e-04,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 1e-05, "high": 0.1, "log": true}}');
INSERT INTO "trial_params" VALUES(39,7,'layers',3.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 1, "high": 8}}');
INSERT INTO "trial_params" VALUES(40,7,'optimizer',2.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, true]}}');
INSERT INTO "trial_params" VALUES(41,7,'dropout',3.00000000000000044408e-01,'{"name": "FloatDistribution", "attributes": {"step": 0.1, "low": 0.0, "high": 0.5, "log": false}}');
INSERT INTO "trial_params" VALUES(42,7,'width',31.0,'{"name": "IntDistribution", "attributes": {"log": true, "step": 1, "low": 16, "high": 256}}');
INSERT INTO "trial_params" VALUES(43,7,'batch',48.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 8, "low": 8, "high": 64}}');
INSERT INTO "trial_params" VALUES(44,8,'learning_rate',3.78970294533647264478e-02,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 1e-05, "high": 0.1, "log": true}}');
INSERT INTO "trial_params" VALUES(45,8,'layers',5.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 1, "high": 8}}');
INSERT INTO "trial_params" VALUES(46,8,'optimizer',4.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, true]}}');
INSERT INTO "trial_params" VALUES(47,8,'dropout',0.2,'{"name": "FloatDistribution", "attributes": {"step": 0.1, "low": 0.0, "high": 0.5, "log": false}}');
INSERT INTO "trial_params" VALUES(48,8,'width',134.0,'{"name": "IntDistribution", "attributes": {"log": true, "step": 1, "low": 16, "high": 256}}');
INSERT INTO "trial_params" VALUES(49,8,'batch',8.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 8, "low": 8, "high": 64}}');
INSERT INTO "trial_params" VALUES(50,11,'x',9.67029839013676673076e-01,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 0.0, "high": 1.0, "log": false}}');
INSERT INTO "trial_params" VALUES(51,12,'x',5.47232249175722329503e-01,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 0.0, "high": 1.0, "log": false}}');
CREATE TABLE trial_system_attributes (
	trial_system_attribute_id INTEGER NOT NULL, 
	trial_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (trial_system_attribute_id), 
	UNIQUE (trial_id, "key"), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_system_attributes" VALUES(1,10,'fixed_params','{"layers": 3}');
CREATE TABLE trial_user_attributes (
	trial_user_attribute_id INTEGER NOT NULL, 
	trial_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (trial_user_attribute_id), 
	UNIQUE (trial_id, "key"), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
CREATE TABLE trial_values (
	trial_value_id INTEGER NOT NULL, 
	trial_id INTEGER NOT NULL, 
	objective INTEGER NOT NULL, 
	value FLOAT, 
	value_type VARCHAR(7) NOT NULL, 
	PRIMARY KEY (trial_value_id), 
	UNIQUE (trial_id, objective), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_values" VALUES(1,1,0,0.5,'FINITE');
INSERT INTO "trial_values" VALUES(2,2,0,0.5625,'FINITE');
INSERT INTO "trial_values" VALUES(3,3,0,0.625,'FINITE');
INSERT INTO "trial_values" VALUES(4,4,0,0.25,'FINITE');
INSERT INTO "trial_values" VALUES(5,6,0,NULL,'INF_POS');
INSERT INTO "trial_values" VALUES(6,7,0,0.875,'FINITE');
INSERT INTO "trial_values" VALUES(7,8,0,0.9375,'FINITE');
INSERT INTO "trial_values" VALUES(8,11,0,9.67029839013676673076e-01,'FINITE');
INSERT INTO "trial_values" VALUES(9,11,1,2.5,'FINITE');
INSERT INTO "trial_values" VALUES(10,12,0,5.47232249175722329503e-01,'FINITE');
INSERT INTO "trial_values" VALUES(11,12,1,2.5,'FINITE');
CREATE TABLE trials (
	trial_id INTEGER NOT NULL, 
	number INTEGER, 
	study_id INTEGER, 
	state VARCHAR(8) NOT NULL, 
	datetime_start DATETIME, 
	datetime_complete DATETIME, 
	PRIMARY KEY (trial_id), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
INSERT INTO "trials" VALUES(1,0,1,'COMPLETE','2025-10-09 08:53:20.000000','2025-10-09 08:53:20.500000');
INSERT INTO "trials" VALUES(2,1,1,'COMPLETE','2025-10-09 08:53:20.000000','2025-10-09 08:53:21.500000');
INSERT INTO "trials" VALUES(3,2,1,'COMPLETE','2025-10-09 08:53:20.000000','2025-10-09 08:53:22.500000');
INSERT INTO "trials" VALUES(4,3,1,'PRUNED','2025-10-09 08:53:20.000000','2025-10-09 08:53:23.500000');
INSERT INTO "trials" VALUES(5,4,1,'FAIL','2025-10-09 08:53:20.000000','2025-10-09 08:53:24.500000');
INSERT INTO "trials" VALUES(6,5,1,'COMPLETE','2025-10-09 08:53:20.000000','2025-10-09 08:53:25.500000');
INSERT INTO "trials" VALUES(7,6,1,'COMPLETE','2025-10-09 08:53:20.000000','2025-10-09 08:53:26.500000');
INSERT INTO "trials" VALUES(8,7,1,'COMPLETE','2025-10-09 08:53:20.000000','2025-10-09 08:53:27.500000');
INSERT INTO "trials" VALUES(9,8,1,'RUNNING','2025-10-09 08:53:20.000000',NULL);
INSERT INTO "trials" VALUES(10,9,1,'WAITING','2025-10-09 08:53:20.000000',NULL);
INSERT INTO "trials" VALUES(11,0,2,'COMPLETE','2025-10-09 08:53:20.000000','2025-10-09 08:53:20.500000');
INSERT INTO "trials" VALUES(12,1,2,'COMPLETE','2025-10-09 08:53:20.000000','2025-10-09 08:53:21.500000');
CREATE TABLE version_info (
	version_info_id INTEGER NOT NULL, 
	schema_version INTEGER, 
	library_version VARCHAR(256), 
	PRIMARY KEY (version_info_id), 
	CHECK (version_info_id=1)
);
INSERT INTO "version_info" VALUES(1,12,'3.1.0');
CREATE UNIQUE INDEX ix_studies_study_name ON studies (study_name);
COMMIT;
